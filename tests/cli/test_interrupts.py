"""Ctrl-C and SIGTERM end every subcommand at once, whatever it does, on a machine that is busy."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import big_models
import support
from support import Case, edit_json, raw

TOKENIZERS = pathlib.Path(__file__).parent.parent / "engine" / "text" / "data"
LIMIT_SECONDS = 0.5
F_SETPIPE_SZ = 1031  # of Linux; in Python's fcntl since 3.10
TIMEOUT_SECONDS = 60
LONG_PROMPT = "a long prompt " * 900
# Of processor time; the slow model's first step takes longer, and steps of 16 tokens take less than
# the second.
SECONDS_INTO_A_STEP = 0.7
SECONDS_OF_SHORT_STEPS = 3.0

_models = None
_limit_seconds = LIMIT_SECONDS


def setUpModule():
    global _models, _limit_seconds
    if support.is_sanitized():
        _limit_seconds = 40 * LIMIT_SECONDS  # that it ends; how fast says the release build
    folder = tempfile.TemporaryDirectory(prefix="tessera-interrupts-")
    unittest.addModuleCleanup(folder.cleanup)
    _models = pathlib.Path(folder.name)
    big_models.write_slow_model(support.tiny_model(), _models / "slow")
    big_models.write_model_without_length_limit(support.tiny_model(), _models / "limitless")


def processor_seconds(process):
    """Processor time that the process has used, which on a busy machine is less than time passed."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Interrupts(Case):
    def setUp(self):
        super().setUp()
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.addCleanup(busy.wait)
        self.addCleanup(busy.kill)

    @property
    def slow(self):
        """Flags for a model of which a step takes seconds."""
        return self.flags("slow")

    @property
    def limitless(self):
        """Flags for a model that tokenises texts of any length."""
        return self.flags("limitless")

    def flags(self, name):
        return ["-m", _models / name, "--chat-template", "llama2", "--device", "cpu"]

    def begin(self, *arguments, **streams):
        """Starts tessera, which is killed should the test fail."""
        streams.setdefault("stdout", subprocess.DEVNULL)
        process = self.start(*arguments, **streams)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def begin_slow(self, command, *arguments, seconds=SECONDS_INTO_A_STEP):
        """Starts tessera and returns in the middle of the first step that takes seconds."""
        process = self.begin(command, *self.slow, "-v", *arguments)
        self.wait_for_line(process, b"load: ")
        end = processor_seconds(process) + seconds
        self.wait_until(lambda: processor_seconds(process) > end)
        return process

    def wait_for_line(self, process, text):
        for line in process.stderr:
            if text in line:
                return
        self.fail(f"no line with {text}")

    def wait_until(self, condition):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)

    def wait_for_file(self, process, name):
        """Waits until the process has a file of this name open."""

        def has_it_open():
            for path in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
                try:
                    if os.readlink(path).endswith(name):
                        return True
                except OSError:  # closed meanwhile
                    pass
            return False

        self.wait_until(has_it_open)

    def wait_for_handlers(self, process):
        """Waits until the process has seen to it that signals do not simply kill it."""

        def handles():
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            caught = int(status.split("SigCgt:")[1].split()[0], 16)
            return caught & 1 << (signal.SIGTERM - 1)

        self.wait_until(handles)

    def assert_ends(self, process, number):
        """Sends the signal and asserts that the process ends in time. Returns standard error."""
        self.assertIsNone(process.poll(), "it had already ended")
        watchdog = threading.Timer(TIMEOUT_SECONDS, process.kill)  # wait(timeout) would poll
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        sent = time.monotonic()
        process.send_signal(number)
        code = process.wait()
        elapsed = time.monotonic() - sent
        err = process.stderr.read().decode() if process.stderr else ""
        self.assertEqual(code, 128 + number, err)
        self.assertLess(elapsed, _limit_seconds)
        return err


class Starting(Interrupts):
    def test_at_the_very_start(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("generate", *self.slow, "-p", "x")
            self.wait_for_handlers(process)
            self.assert_ends(process, number)

    def test_while_weights_are_loaded(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("generate", *self.slow, "--check-weights", "-p", "x")
            self.wait_for_file(process, "model.safetensors")
            self.assert_ends(process, number)


class Reading(Interrupts):
    def test_a_slow_pipe(self):
        process = self.begin("generate", *self.slow, "-p", "-", stdin=subprocess.PIPE)
        process.stdin.write(b"half a prompt")
        process.stdin.flush()
        self.wait_for_handlers(process)
        time.sleep(0.2)
        self.assert_ends(process, signal.SIGINT)

    def test_an_endless_pipe(self):
        endless = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
        self.addCleanup(endless.wait)
        self.addCleanup(endless.kill)
        process = self.begin("summarize", *self.limitless, "-", stdin=endless.stdout)
        endless.stdout.close()
        self.wait_for_handlers(process)
        self.assert_ends(process, signal.SIGTERM)

    def test_a_named_pipe_that_nobody_writes(self):
        os.mkfifo(self.folder / "pipe")
        process = self.begin("generate", *self.slow, "-f", "pipe")
        self.wait_for_handlers(process)
        time.sleep(0.2)
        self.assert_ends(process, signal.SIGINT)

    def test_tokenising_forty_megabytes(self):
        text = self.write("long.txt", "the other pattern in their text\n" * 1_300_000)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("generate", *raw(self.limitless), "-v", "-f", text)
            self.wait_for_line(process, b"load: ")
            time.sleep(0.3)
            self.assert_ends(process, number)

    def test_tokenising_what_cannot_be_divided(self):
        """A word of which the merges take long, and accents that are composed before all else."""
        for pipeline, text in [("llama3", "the" * 1_390_000), ("qwen2", "e\u0301" * 15_000_000)]:
            folder = self.copy_model(pipeline)
            (folder / "tokenizer.model").unlink()
            shutil.copy(TOKENIZERS / f"{pipeline}.json", folder / "tokenizer.json")
            edit_json(folder / "tokenizer_config.json", bos_token=None, eos_token=None)
            edit_json(folder / "config.json", vocab_size=1000)
            process = self.begin("tokenize", "-m", folder, "-f", self.write("long.txt", text))
            self.wait_until(lambda: processor_seconds(process) > 0.2)
            self.assert_ends(process, signal.SIGINT)

    def test_tokenising_words_that_begin_with_a_space(self):
        """The text is divided by a step that joins a space to the word behind it."""
        folder = self.copy_model("unigram")
        (folder / "tokenizer.model").unlink()
        shutil.copy(TOKENIZERS / "unigram.json", folder / "tokenizer.json")
        edit_json(folder / "tokenizer.json", normalizer=None)
        edit_json(folder / "tokenizer_config.json", bos_token=None, eos_token=None)
        edit_json(folder / "config.json", vocab_size=1000)
        text = self.folder / "long.txt"
        with open(text, "wb") as file:
            for _ in range(150):  # 180 MB, two seconds of a fast processor
                file.write(b"the other words in their text " * 40_000)
        for seconds in (0.4, 0.8):
            process = self.begin("tokenize", "-m", folder, "-f", text)
            self.wait_until(lambda: processor_seconds(process) > seconds)
            self.assert_ends(process, signal.SIGINT)


class Computing(Interrupts):
    def test_prefill(self):
        text = self.write("long.txt", LONG_PROMPT)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin_slow("generate", "-f", text)
            err = self.assert_ends(process, number)
            self.assertRegex(err, r"prompt 0 of \d{4,} tok \| gen 0 tok \| ttft - ")

    def test_prefill_of_several_steps(self):
        text = self.write("long.txt", LONG_PROMPT)
        seconds = SECONDS_OF_SHORT_STEPS * (4 if support.is_sanitized() else 1)
        process = self.begin_slow("generate", "--prefill-chunk", "16", "-f", text, seconds=seconds)
        err = self.assert_ends(process, signal.SIGINT)
        self.assertRegex(err, r"prompt [1-9]\d* of \d{4,} tok [1-9][\d.]* tok/s \| gen 0 tok ")

    def test_summarize(self):
        text = self.write("long.txt", LONG_PROMPT)
        self.assert_ends(self.begin_slow("summarize", text), signal.SIGINT)

    def test_a_kv_file(self):
        text = self.write("long.txt", LONG_PROMPT)
        self.assert_ends(self.begin_slow("prefill", text, "-o", "long.kv"), signal.SIGINT)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["long.txt"])

    def test_decode(self):
        for model in (self.slow, self.long_model()):
            process = self.begin("generate", *model, "--ignore-eos", "-n", "4000", "-p", "x",
                                 stdout=subprocess.PIPE)
            process.stdout.read(1)  # the answer has begun
            self.assert_ends(process, signal.SIGINT)
            process.stdout.close()

    def test_a_reader_that_takes_nothing(self):
        read_end, write_end = os.pipe()
        fcntl.fcntl(write_end, F_SETPIPE_SZ, 4096)
        process = self.begin("generate", *self.long_model(), "--ignore-eos", "-n", "20000",
                             "-p", "x", stdout=write_end)
        os.close(write_end)
        self.addCleanup(os.close, read_end)
        time.sleep(2)
        self.assert_ends(process, signal.SIGTERM)

    def test_bench(self):
        arguments = ["--prompt-lengths", "2048", "--decode-lengths", "8", "--repetitions", "2"]
        process = self.begin("bench", *self.slow, *arguments)
        self.wait_for_line(process, b"timing ")
        time.sleep(SECONDS_INTO_A_STEP)
        self.assert_ends(process, signal.SIGINT)

    def test_bench_attention(self):
        process = self.begin("bench", "attention", "--device", "cpu", "--lengths", "16k",
                             "--num-heads", "64", "--num-kv-heads", "8")
        self.wait_for_line(process, b"timing ")
        time.sleep(SECONDS_INTO_A_STEP)
        self.assert_ends(process, signal.SIGTERM)


class Batch(Interrupts):
    def begin_batch(self, *arguments, prompt, max_tokens):
        lines = [f'{{"id": "{i}", "prompt": "{prompt}", "max_tokens": {max_tokens}}}\n'
                 for i in range(3)]
        self.write("in.jsonl", "".join(lines))
        return self.begin_slow("batch", "-i", "in.jsonl", "-o", "out.jsonl", *arguments)

    def test_prefill(self):
        process = self.begin_batch(prompt=LONG_PROMPT, max_tokens=4)
        self.assertIn("--resume", self.assert_ends(process, signal.SIGINT))
        self.assertEqual((self.folder / "out.jsonl").read_text(), "")

    def test_checking_a_long_line(self):
        """Almost as long as a line may be."""
        prompt = {"role": "user", "content": "the text " * 900_000}
        self.write("in.jsonl", json.dumps({"id": "a", "messages": [prompt] * 7}))
        for seconds in (0.1, 0.4, 0.7):
            process = self.begin("batch", *self.limitless, "-i", "in.jsonl", "-o", "out.jsonl")
            self.wait_until(lambda: processor_seconds(process) > seconds)
            self.assert_ends(process, signal.SIGINT)

    def test_tokenising(self):
        self.write("in.jsonl", json.dumps({"id": "a", "prompt": "the text " * 1_600_000}))
        process = self.begin("batch", *self.limitless, "-v", "-i", "in.jsonl", "-o", "out.jsonl")
        self.wait_for_line(process, b"load: ")
        time.sleep(0.3)
        self.assertIn("--resume", self.assert_ends(process, signal.SIGINT))

    def test_decode(self):
        process = self.begin_batch("--ignore-eos", prompt="x", max_tokens=4000)
        self.assertIn("--resume", self.assert_ends(process, signal.SIGTERM))


class Chat(Interrupts):
    def chat(self, flags):
        terminal = self.terminal("chat", *flags)
        terminal.expect_prompt()
        return terminal

    def assert_prompt_returns(self, terminal):
        sent = time.monotonic()
        terminal.send("\x03")
        terminal.expect_prompt()
        self.assertLess(time.monotonic() - sent, _limit_seconds)

    def assert_terminates(self, terminal):
        sent = time.monotonic()
        terminal.signal(signal.SIGTERM)
        self.assertEqual(terminal.exit_code(), 128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - sent, _limit_seconds)

    def test_prefill(self):
        self.write("long.txt", LONG_PROMPT)
        terminal = self.chat(self.slow)
        for stop in (self.assert_prompt_returns, self.assert_terminates):
            terminal.send("/read long.txt\r")
            time.sleep(SECONDS_INTO_A_STEP)
            stop(terminal)
            self.assertNotIn("error", terminal.seen)

    def test_answering_again(self):
        messages = [{"role": "user", "content": LONG_PROMPT}, {"role": "assistant", "content": "x"}]
        self.write("kept.json", json.dumps({"messages": messages}))
        terminal = self.chat(self.slow)
        terminal.send("/load kept.json\r")
        terminal.expect("loaded 2 messages")
        terminal.expect_prompt()
        terminal.send("/regen\r")
        time.sleep(SECONDS_INTO_A_STEP)
        self.assert_prompt_returns(terminal)
        self.assertIn("stopped before the answer began: the conversation stays", terminal.seen)
        terminal.send("/show\r")
        terminal.expect(r"messages +2")

    def test_reading_a_big_file(self):
        self.write("long.txt", "the other pattern in their text\n" * 1_300_000)
        terminal = self.chat(self.limitless)
        for stop in (self.assert_prompt_returns, self.assert_terminates):
            terminal.send("/read long.txt\r")
            terminal.expect("tokenising")
            stop(terminal)

    def test_at_the_prompt(self):
        terminal = self.chat(self.slow)
        self.assert_prompt_returns(terminal)
        self.assert_terminates(terminal)


class LongTexts(Case):
    """Refused by their length alone, before they are read."""

    def write_sparse(self, name, num_bytes):
        path = self.folder / name
        with open(path, "wb") as file:
            file.truncate(num_bytes)
        return path

    def assert_refused(self, *arguments, **streams):
        result = self.check(*arguments, code=1, **streams)
        self.assert_one_error(result, "bytes are at least")
        self.assertIn("the context holds 256", result.err)

    def test_files(self):
        path = self.write_sparse("long.txt", 900_000_000)
        self.assert_refused("generate", *self.model, "-f", path)
        self.assert_refused("summarize", *self.model, path, "--on-overflow", "error")
        edit_json(self.copy_model("broken") / "config.json", max_position_embeddings="many")
        broken = ["-m", self.folder / "broken", path, "--on-overflow", "error"]
        self.check("summarize", *broken, code=1)

    def test_pipes(self):
        self.assert_refused("generate", *self.model, "-p", "-", stdin=b"a" * 1_000_000)

    def test_the_command_line(self):
        self.assert_refused("generate", *raw(self.model), "-p", "a" * 100_000)
