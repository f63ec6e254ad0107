"""tessera batch --devices: a process for each device of this host, one output."""

import fcntl
import json
import pathlib
import signal
import time

from support import TIMEOUT_SECONDS
from test_batch import BatchCase, short_line

DEVICES = ["--devices", "cpu,cpu,cpu", "--threads", "1"]


def without_device(flags):
    """Flags of a model without --device, which --devices stands for."""
    at = flags.index("--device") if "--device" in flags else len(flags)
    return [*flags[:at], *flags[at + 2:]]


class Devices(BatchCase):
    def batch(self, *arguments, flags=None, **options):
        flags = flags or self.model
        if "--devices" in arguments:
            flags = without_device(flags)
        return super().batch(*arguments, flags=flags, **options)

    def setUp(self):
        super().setUp()
        self.lines = [short_line(f"item {i}", f"question {i}", max_tokens=20, ignore_eos=True)
                      for i in range(40)]  # fmt: skip
        self.write_input(*self.lines)

    def shards(self):
        return sorted(path.name for path in self.folder.glob("out.jsonl.shard-*"))

    def test_give_the_answers_of_one_process(self):
        self.lines[7] = "{"
        self.write_input(*self.lines)
        one = self.batch("--temp", "0", output="one.jsonl", code=3)
        several = self.batch(*DEVICES, "--temp", "0", "--stats-json", "stats", code=3)
        self.assertEqual(self.records(), self.records("one.jsonl"))
        self.assertEqual(self.digest(several), self.digest(one))
        self.assertEqual(self.shards(), [])
        stats = json.loads((self.folder / "stats").read_text())
        self.assertEqual((stats["requests"], stats["answered"], stats["errors"]), (40, 39, 1))
        self.assertEqual([own["shard"] for own in stats["devices"]], ["0/3", "1/3", "2/3"])
        waits = [own["longest_token_wait_seconds"] for own in stats["devices"]]
        self.assertEqual(stats["longest_token_wait_seconds"], max(waits))
        # What they leave can be gone on with by one process.
        result = self.batch("--temp", "0", "--resume", code=3)
        self.assertIn("39 answered before", result.err)

    def start_long(self, *arguments):
        """Starts a run, and returns in the middle of its answers."""
        lines = [short_line(f"item {i}", "x", max_tokens=2000, ignore_eos=True) for i in range(24)]
        self.write_input(*lines)
        process = self.start("batch", *without_device(self.long_model()), *DEVICES, *arguments,
                             "-i", "in.jsonl", "-o", "out.jsonl", "--max-sequences", "2",
                             "--temp", "1")  # fmt: skip
        self.addCleanup(lambda: process.poll() is None and process.kill())
        for index in range(3):
            self.wait_for_answer(f"out.jsonl.shard-{index}-of-3")
        return process

    def resume_long(self, *arguments, code=0):
        return self.check("batch", *without_device(self.long_model()), *DEVICES, "-i", "in.jsonl",
                          "-o", "out.jsonl", "--temp", "1", "--resume", *arguments,
                          code=code)  # fmt: skip

    def begin(self, *arguments):
        """Starts a run, interrupts it in the middle of its answers, and leaves its shards."""
        process = self.start_long(*arguments)
        process.send_signal(signal.SIGINT)
        line = process.stderr.readline().decode()
        while line.startswith("batch: "):  # progress, every few seconds
            line = process.stderr.readline().decode()
        self.assertIn("interrupted: requests in flight will be finished, Ctrl-C again stops", line)
        self.assertIn("--temp 1 --resume", line)
        return process

    def test_interrupts_reach_every_process(self):
        process = self.begin()
        process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "")
        self.assertEqual(len(self.shards()), 6)
        command = ["batch", *without_device(self.long_model()), "-i", "in.jsonl",
                   "-o", "out.jsonl", "--temp", "1"]  # fmt: skip
        self.check(*command, *DEVICES, code=2)
        result = self.check(*command, "--devices", "cpu,cpu", "--resume", code=2)
        self.assert_one_error(result, "out.jsonl.shard-0-of-3 holds answers of a run with --devices")
        for flags in ((), ("--resume",)):  # nor does one process compute them again
            result = self.check(*command, "--device", "cpu", *flags, code=2)
            self.assert_one_error(result, "out.jsonl.shard-0-of-3 holds answers of a run with")
        self.assertEqual((self.folder / "out.jsonl").read_text(), "")
        result = self.check(*command, *DEVICES, "--resume")
        self.assertRegex(result.err, r"24 requests: \d+ answered, 0 errors, \d+ answered before")
        self.assertEqual(len(self.records()), 24)
        self.assertEqual(self.shards(), [])
        self.assertIn("24 answered before", self.check(*command, *DEVICES, "--resume").err)

    def test_the_command_of_a_finished_run_ends_as_that_of_one_process(self):
        self.lines[7] = "{"
        self.write_input(*self.lines)
        first = self.batch(*DEVICES, "--temp", "1", "--resume", code=3)
        before = self.records()
        self.write("out.jsonl.shard-1-of-3", "left by a merge that was killed")
        again = self.batch(*DEVICES, "--temp", "1", "--resume", "--stats-json", "stats", code=3)
        self.assertIn("40 requests: 0 answered, 1 error, 39 answered before", again.err)
        self.assertEqual(self.digest(again), self.digest(first))
        self.assertEqual(self.records(), before)
        self.assertEqual(self.shards(), [])
        stats = json.loads((self.folder / "stats").read_text())
        manifest = json.loads((self.folder / "out.jsonl.manifest.json").read_text())
        self.assertEqual(stats["seed"], manifest["settings"]["seed"])

        del self.lines[7]
        self.write_input(*self.lines)
        self.assertIn("dropped 1 error record",
                      self.batch(*DEVICES, "--temp", "1", "--resume").err)  # fmt: skip
        result = self.batch(*DEVICES, "--temp", "0.5", "--resume", code=2)
        self.assert_one_error(result, "temperature was 1.0, now 0.5")
        self.batch(*DEVICES, "--temp", "1", "--resume", flags=["-m", "missing"], code=1)

    def test_cannot_be_added_to_what_was_put_together(self):
        # Whether a prompt is too long is known when the model is.
        self.write_input(*self.lines, short_line("long", "word " * 400))
        self.batch(*DEVICES, "--temp", "0", code=3)
        for line in (short_line("long", "word " * 400), short_line("new", "x")):
            self.write_input(*self.lines, line)
            before = (self.folder / "out.jsonl").read_text()
            result = self.batch(*DEVICES, "--temp", "0", "--resume", code=2)
            self.assert_one_error(result, "out.jsonl holds answers, but not all")
            self.assertIn("run the same command without --devices to do the rest", result.err)
            self.assertEqual((self.folder / "out.jsonl").read_text(), before)
        self.assertIn("40 answered before", self.batch("--temp", "0", "--resume").err)
        self.assertIn("41 answered before", self.batch(*DEVICES, "--temp", "0", "--resume").err)

    def test_an_interrupted_overwrite_is_gone_on_with(self):
        self.batch("--temp", "0")
        process = self.begin("--overwrite")
        process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130)
        result = self.resume_long()
        self.assertRegex(result.err, r"24 requests: \d+ answered, 0 errors, \d+ answered before")
        self.assertEqual(len(self.records()), 24)
        self.assertEqual(self.shards(), [])

    def leave_shards(self, names=("out.jsonl.shard-0-of-3", "out.jsonl.shard-1-of-3",
                                  "out.jsonl.shard-2-of-3")):  # fmt: skip
        """What a run that was stopped before it merged has left, of all answers of the input."""
        for index, name in enumerate(names):
            self.batch("--temp", "1", "--seed", "5", "--shard", f"{index}/{len(names)}",
                       output=name)  # fmt: skip

    def test_torn_lines_are_gone_on_with(self):
        self.leave_shards()
        for name in ("out.jsonl.shard-0-of-3", "out.jsonl.shard-2-of-3"):
            lines = (self.folder / name).read_bytes().splitlines(keepends=True)
            self.write(name, b"".join(lines[:2]) + lines[2][:-20])
        result = self.batch(*DEVICES, "--temp", "1", "--resume")
        self.assertIn("40 requests: 23 answered, 0 errors, 17 answered before", result.err)
        self.assertIn(" | seed 5 | ", result.err)
        self.assertEqual(len(self.records()), 40)

    def test_other_settings_are_refused_before_any_process_begins(self):
        self.leave_shards()
        for name in ("out.jsonl.shard-1-of-3", "out.jsonl.shard-2-of-3"):
            (self.folder / name).unlink()
        before = (self.folder / "out.jsonl.shard-0-of-3").read_bytes()
        for flags, text in [(("--seed", "6"), "seed was 5, now 6"),
                            (("-n", "9"), "max_tokens was 8, now 9"),
                            (("--system", "x"), 'system was not set, now "x"')]:  # fmt: skip
            result = self.batch(*DEVICES, "--temp", "1", "--resume", *flags, code=2)
            self.assert_one_error(result, text)
        self.lines[0] = short_line("item 0", "another question")
        self.write_input(*self.lines)
        result = self.batch(*DEVICES, "--temp", "1", "--resume", code=2)
        self.assert_one_error(result, 'in.jsonl:1: request "item 0" is not the one')
        self.assertEqual((self.folder / "out.jsonl.shard-0-of-3").read_bytes(), before)
        self.assertEqual(self.shards(), ["out.jsonl.shard-0-of-3",
                                         "out.jsonl.shard-0-of-3.manifest.json",
                                         "out.jsonl.shard-1-of-3.manifest.json",
                                         "out.jsonl.shard-2-of-3.manifest.json"])  # fmt: skip

    def test_errors_of_earlier_runs_are_counted_again_only_when_tried_again(self):
        self.lines[0] = "{"
        self.write_input(*self.lines)
        self.batch("--temp", "0", "--shard", "0/3", output="out.jsonl.shard-0-of-3", code=3)
        with open(self.folder / "out.jsonl.shard-0-of-3") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            result = self.batch(*DEVICES, "--temp", "0", "--resume", "--force", code=1)
        self.assertIn("40 requests: 26 answered, 0 errors, 13 answered before", result.err)
        result = self.batch(*DEVICES, "--temp", "0", "--resume", code=3)
        self.assertIn("40 requests: 0 answered, 1 error, 39 answered before", result.err)

    def test_a_damaged_manifest_is_forced(self):
        self.leave_shards()
        manifest = self.write("out.jsonl.shard-0-of-3.manifest.json", "{")
        result = self.batch(*DEVICES, "--temp", "1", "--resume", code=2)
        self.assert_one_error(result, "shard-0-of-3.manifest.json: ")
        self.assertEqual(manifest.read_text(), "{")
        result = self.batch(*DEVICES, "--temp", "1", "--resume", "--force")
        self.assertIn("40 answered before", result.err)
        settings = json.loads((self.folder / "out.jsonl.manifest.json").read_text())["settings"]
        self.assertEqual(settings["seed"], 5)

    def test_an_overwrite_that_cannot_begin_keeps_the_shards(self):
        other = ("out.jsonl.shard-0-of-2", "out.jsonl.shard-1-of-2")
        for names in ((), other):
            self.leave_shards(*[names] if names else [])
            before = {path: path.read_bytes() for path in self.folder.glob("out.jsonl.shard-*")}
            self.batch(*DEVICES, "--overwrite", flags=self.damaged_model(), code=1)
            self.batch("--overwrite", flags=[*self.damaged_model(), "--device", "cpu"], code=1)
            self.assertEqual({path: path.read_bytes() for path in before}, before)
        result = self.batch(*DEVICES, "--overwrite", "--temp", "1")
        self.assertIn("40 requests: 40 answered, 0 errors |", result.err)
        self.assertEqual(self.shards(), [])
        self.assertEqual(len(self.records()), 40)

        self.leave_shards(other)
        self.batch("--overwrite", "--temp", "1")
        self.assertEqual(self.shards(), [])

    def test_a_run_that_could_not_begin_is_begun_again(self):
        flags = self.damaged_model()
        for _ in range(2):
            result = self.batch(*DEVICES, flags=flags, code=1)
            self.assertIn("the run on cpu (exit code 1)", result.err)
        self.assertEqual({path.stat().st_size for path in self.folder.glob("out.jsonl.shard-*")},
                         {0})  # fmt: skip
        self.batch("--temp", "0")
        self.assertEqual(len(self.records()), 40)

    def damaged_model(self):
        """Flags of a model whose weights cannot be loaded, without --device."""
        weights = self.folder / "damaged" / "model.safetensors"
        if not weights.exists():
            self.copy_model("damaged")
            weights.write_bytes(weights.read_bytes()[:-64])
        return ["-m", str(weights.parent), "--chat-template", "llama2"]

    def test_an_overwrite_that_answers_nothing_keeps_the_answers(self):
        self.batch("--temp", "0")
        before = (self.folder / "out.jsonl").read_text()
        self.batch(*DEVICES, "--overwrite", flags=self.damaged_model(), code=1)
        self.assertEqual((self.folder / "out.jsonl").read_text(), before)

    def test_second_interrupt_leaves_no_process(self):
        process = self.begin()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130)
        self.assert_no_process_is_left()

    def test_processes_end_with_the_one_that_started_them(self):
        process = self.begin()
        process.kill()
        process.communicate(timeout=TIMEOUT_SECONDS)
        self.assert_no_process_is_left()

    def assert_no_process_is_left(self):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while any(str(self.folder) in line for line in self.command_lines()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def command_lines(self):
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                yield path.read_text(errors="replace")
            except OSError:  # it has ended
                pass

    def test_one_that_fails_is_told_of_and_loses_nothing(self):
        with open(self.folder / "out.jsonl.shard-1-of-3", "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            result = self.batch(*DEVICES, "--resume", code=1)
        self.assertIn("error: cpu: out.jsonl.shard-1-of-3: another run is writing", result.err)
        self.assertIn("the run on cpu (exit code 1) failed; what was answered is safe", result.err)
        self.assertIn("27 answered before", self.batch(*DEVICES, "--resume").err)
        self.assertEqual(len(self.records()), 40)

    def test_a_manifest_that_cannot_be_written_leaves_the_shards(self):
        manifest = self.folder / "out.jsonl.manifest.json"
        process = self.start_long()
        manifest.mkdir()
        err = process.communicate(timeout=TIMEOUT_SECONDS)[1].decode()
        self.assertEqual(process.returncode, 1)
        self.assertIn("out.jsonl.manifest.json: ", err)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "")
        self.assert_one_error(self.resume_long(code=2), "is not the manifest of a batch")
        manifest.rmdir()
        self.assertIn("24 answered before", self.resume_long().err)
        self.assertEqual(len(self.records()), 24)

    def test_mistakes_are_told_once(self):
        self.assert_one_error(self.batch(*DEVICES, flags=["-m", "missing"], code=1), "missing")
        self.assert_one_error(self.batch(*DEVICES, "--shard", "0/2", code=2), "exclude each other")
        self.assert_one_error(self.batch(*DEVICES, output="-", code=2), "output that is a file")
        result = super().batch(*DEVICES, flags=[*self.model[:2], "--device", "cuda"], code=2)
        self.assert_one_error(result, "--devices excludes --device")
        for text in ("", "0,", "x", "cpu;cpu", "-1", "cuda:", "cuda:x", "cuda:-1", "99999999999"):
            result = self.batch("--devices", text, code=2)
            self.assert_one_error(result, "--devices must be numbers of GPUs")
        self.assert_one_error(self.batch("--devices", "1,cuda:01", code=2), "has cuda:1 twice")
        self.write_input(short_line("a", "x"), short_line("a", "x"))
        self.assert_one_error(self.batch(*DEVICES, code=1), "was already used on line 1")
        self.assertEqual(self.shards(), [])
