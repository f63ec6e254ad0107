"""tessera batch: the files and streams it reads and writes, and what may happen to them."""

import json
import os
import resource
import shutil
import signal
import subprocess

from support import TIMEOUT_SECONDS, read_json_lines
from test_batch import BatchCase, short_line


class Files(BatchCase):
    def setUp(self):
        super().setUp()
        self.write_input(short_line("a", "x"))

    def test_input_is_output(self):
        self.assert_one_error(self.batch(output="in.jsonl", code=2), "same file")
        (self.folder / "link").symlink_to("in.jsonl")
        self.assert_one_error(self.batch("--overwrite", output="link", code=2), "same file")
        self.assertNotEqual((self.folder / "in.jsonl").read_text(), "")

    def test_existing_output(self):
        self.write("out.jsonl", "precious\n")
        result = self.batch(code=2)
        self.assert_one_error(result, "exists")
        self.assertIn("--resume", result.err)
        self.assertIn("--overwrite", result.err)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "precious\n")
        self.assert_one_error(self.batch("--resume", code=1), "not a batch result")
        self.assertEqual((self.folder / "out.jsonl").read_text(), "precious\n")
        self.batch("--overwrite")
        self.assertEqual(set(self.records()), {"a"})

    def test_unwritable_places_are_found_before_the_model_loads(self):
        missing_model = ["-m", "missing"]
        result = self.batch(output="no/such/folder/out.jsonl", flags=missing_model, code=1)
        self.assert_one_error(result, "No such file")
        result = self.batch(output=".", flags=missing_model, code=1)
        self.assert_one_error(result, "directory")

    def test_missing_input(self):
        os.remove(self.folder / "in.jsonl")
        self.assert_one_error(self.batch(code=1), "in.jsonl")

    def test_full_disk(self):
        result = self.batch(output="/dev/full", code=1)
        self.assert_one_error(result, "No space left")
        self.assertIn("0 results of this run are safe", result.err)
        self.assertNotIn("--resume", result.err)  # which such an output cannot

    def test_full_disk_behind_standard_output(self):
        with open("/dev/full", "wb") as full:
            process = self.start("batch", *self.model, "-i", "in.jsonl", "-o", "-", stdout=full)
            _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn(b"standard output: ", err)
        self.assertNotIn(b"--resume", err)

    def test_statistics_never_replace_requests_or_answers(self):
        self.batch()
        for path in ("in.jsonl", "./in.jsonl", "out.jsonl", "new.jsonl"):
            with self.subTest(path=path):
                output = "new.jsonl" if path == "new.jsonl" else "out.jsonl"
                result = self.batch("--overwrite", "--stats-json", path, output=output, code=2)
                self.assert_one_error(result, "same file")
        self.assertEqual(set(self.records()), {"a"})
        # The manifest is written too, though no flag names it.
        result = self.batch("--stats-json", "b.manifest.json", output="b", code=2)
        self.assert_one_error(result, "--stats-json and the output's manifest are the same file")
        result = self.batch("--stats-json", "-", output="-", code=2)
        self.assert_one_error(result, "standard output")

    def test_manifest_replaces_no_other_file(self):
        requests = (self.folder / "in.jsonl").rename(self.folder / "a.manifest.json")
        before = requests.read_bytes()
        for output in ("a", "./a"):
            result = self.check("batch", *self.model, "-i", requests, "-o", output, code=2)
            self.assert_one_error(result, "input and the output's manifest are the same file")
        shutil.copy(requests, self.folder / "in.jsonl")
        for flags in ((), ("--overwrite",), ("--resume",), ("--resume", "--force")):
            result = self.batch(*flags, output="a", code=2)
            self.assert_one_error(result, "a.manifest.json: is not the manifest of a batch")
        self.assertEqual(requests.read_bytes(), before)
        requests.write_bytes(b"")  # nobody's loss
        self.batch("--overwrite", output="a")
        self.batch("--overwrite", output="a")

    def test_size_limit(self):
        lines = [short_line(f"item {i}", f"question {i}", max_tokens=100) for i in range(16)]
        self.write_input(*lines)
        self.batch(output="reference.jsonl")
        limit = (self.folder / "reference.jsonl").stat().st_size // 2
        command = ["batch", *self.model, "-i", "in.jsonl", "-o", "out.jsonl", "-n", "8"]
        process = self.start(*command, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, limit)))  # fmt: skip
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        text = (self.folder / "out.jsonl").read_text()
        self.assertTrue(text.endswith("\n"))
        num_safe = len(self.records())
        self.assertGreater(num_safe, 0)
        self.assertIn(f"File too large; {num_safe} results of this run are safe", err.decode())
        self.assertIn(b"hint: make room and run the same command with --resume", err)
        self.batch("--resume")
        self.assertEqual(self.records(), self.records("reference.jsonl"))

    def test_output_in_use(self):
        import fcntl

        with open(self.folder / "out.jsonl", "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.assert_one_error(self.batch(code=1), "another run")


class Streams(BatchCase):
    def test_standard_input_and_output(self):
        lines = [short_line(f"item {i}", "x") for i in range(3)]
        self.write_input(*lines)
        self.batch()
        text = "".join(json.dumps(line) + "\n" for line in lines)
        result = self.check("batch", *self.model, "-i", "-", "-o", "-", "-n", "8", stdin=text)
        self.write("piped.jsonl", result.out)
        self.assertEqual(self.records("piped.jsonl"), self.records())
        self.assertEqual(list(self.folder.glob("-*")), [])

    def test_input_that_cannot_seek(self):
        text = json.dumps(short_line("a", "x"))
        self.check("batch", *self.model, "-i", "/dev/stdin", "-o", "out.jsonl", stdin=text)
        self.assertEqual(set(self.records()), {"a"})

    def test_interrupt_while_input_is_awaited(self):
        process = self.start("batch", *self.model, "-i", "-", "-o", "out", stdin=subprocess.PIPE)
        with process:
            # More than a pipe holds: when this is written, the run has begun to read.
            process.stdin.write(b"\n" * (1 << 20))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=TIMEOUT_SECONDS), 130)

    def test_no_room_for_standard_input(self):
        self.environment["TMPDIR"] = str(self.folder / "missing")
        result = self.check("batch", *self.model, "-i", "-", "-o", "out", stdin="{}", code=1)
        self.assert_one_error(result, "missing: cannot hold a temporary file")

    def test_standard_output_cannot_be_resumed(self):
        self.write_input(short_line("a", "x"))
        for flag in ("--resume", "--overwrite"):
            result = self.batch(flag, output="-", code=2)
            self.assert_one_error(result, "standard output is not a file")
            result = self.batch(flag, output="/dev/stdout", code=2)
            self.assert_one_error(result, "/dev/stdout is not a file")

    def test_closed_pipe(self):
        self.write_input(*[short_line(f"{i}", "x", max_tokens=100) for i in range(400)])
        for output in ("-", "/dev/stdout"):
            with self.subTest(output=output):
                process = self.start("batch", *self.model, "-i", "in.jsonl", "-o", output, "-q")
                self.addCleanup(process.kill)
                self.assertIn(b"custom_id", process.stdout.readline())
                process.stdout.close()
                self.assertEqual(process.wait(timeout=TIMEOUT_SECONDS), 141)
                self.assertEqual(process.stderr.read(), b"")
                process.stderr.close()


class InputThatChanges(BatchCase):
    def test_is_not_answered(self):
        # More than is read at once.
        lines = [short_line(f"{i}", "before", max_tokens=100, user="x" * 2000) for i in range(200)]
        self.write_input(*lines)
        process = self.start("batch", *self.long_model(), "-i", "in.jsonl", "-o", "out.jsonl",
                             "--max-sequences", "2", "--temp", "0")  # fmt: skip
        self.addCleanup(process.kill)
        self.wait_for_answer()
        process.send_signal(signal.SIGSTOP)
        # In place: the run has the file open. All lines keep their lengths.
        with open(self.folder / "in.jsonl", "r+b") as file:
            text = file.read().replace(b"before", b"behind")
            file.seek(0)
            file.write(text)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(err.decode(), r"error: in\.jsonl:\d+: changed while the batch was running")
        self.assertLess(len(self.records()), 200)


class Displaced(BatchCase):
    """The output is deleted, moved or replaced while answers are written to it."""

    def displace(self, action):
        """Returns what was said, and the lines that were there when `action` was done."""
        self.write_input(*[short_line(f"{i}", "x", max_tokens=1000) for i in range(200)])
        process = self.start("batch", *self.long_model(), "-i", "in.jsonl", "-o", "out.jsonl")
        self.addCleanup(process.kill)
        self.wait_for_answer()
        process.send_signal(signal.SIGSTOP)
        seen = (self.folder / "out.jsonl").read_bytes()
        action(self.folder / "out.jsonl")
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        return err.decode(), seen

    def assert_kept(self, path, seen):
        text = path.read_bytes()
        self.assertTrue(text.startswith(seen[: seen.rindex(b"\n") + 1]))
        self.assertTrue(text.endswith(b"\n"))
        self.assertGreater(len(read_json_lines(path)), 0)

    def test_deleted(self):
        self.write("out.jsonl.rescued", "of another day")
        err, seen = self.displace(lambda path: path.unlink())
        self.assertIn("error: out.jsonl: was deleted", err)
        self.assertIn("out.jsonl.rescued.1", err)
        self.assert_kept(self.folder / "out.jsonl.rescued.1", seen)
        self.assertEqual((self.folder / "out.jsonl.rescued").read_text(), "of another day")

    def test_moved(self):
        err, seen = self.displace(lambda path: path.rename(self.folder / "elsewhere.jsonl"))
        self.assertIn(str(self.folder / "elsewhere.jsonl"), err)
        self.assert_kept(self.folder / "elsewhere.jsonl", seen)

    def test_replaced(self):
        other = self.write("other", "another file\n")
        err, seen = self.displace(lambda path: other.rename(path))
        self.assertIn("out.jsonl.rescued", err)
        self.assert_kept(self.folder / "out.jsonl.rescued", seen)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "another file\n")
