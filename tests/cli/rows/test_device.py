"""Rows 87 and 89 to 99: signals, devices, the command line, and chat without a terminal."""

import json
import os
import signal

from rows.contract import Row
from support import edit_json, raw


class Signals(Row):
    def interrupted(self, flags, number, code):
        process = self.start("generate", *raw(flags), "-p", "hello", "--ignore-eos")
        os.read(process.stdout.fileno(), 1)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, err)
        self.assertNotIn(b"error", err)

    def test_row_087_interrupt_and_terminate(self):
        flags = self.long_model()
        self.interrupted(flags, signal.SIGINT, 130)
        self.interrupted(flags, signal.SIGTERM, 143)

    def test_row_087_a_batch_says_how_to_go_on(self):
        lines = [{"id": str(i), "prompt": "hi"} for i in range(200)]
        self.write("in.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        flags = [*self.long_model(), "--ignore-eos"]
        process = self.start("batch", *flags, "-n", "50", "-i", "in.jsonl", "-o", "out.jsonl")
        while not (self.folder / "out.jsonl").exists() or not os.path.getsize(
            self.folder / "out.jsonl"
        ):
            pass
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"--resume", err)

    def test_row_089_while_a_prompt_is_read(self):
        flags = self.long_model()
        self.write("prompt.txt", "word " * 10_000)
        process = self.start("generate", *raw(flags), "-f", "prompt.txt", "-v",
                             "--prefill-chunk", "64")  # fmt: skip
        said = b""
        while b"load:" not in said:
            said += os.read(process.stderr.fileno(), 4096)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)


class Device(Row):
    def has_gpu(self):
        return self.measured("inspect", *self.model[:2], "--device", "cuda").code == 0

    def test_row_090_no_gpu(self):
        if self.has_gpu():
            self.skipTest("there is a GPU")
        result = self.refused("generate", *self.model[:2], "--raw", "-p", "x", "--device", "cuda",
                              words="")  # fmt: skip
        self.assertRegex(result.err, "^error: (CUDA cannot be used: no NVIDIA|"
                                     "this tessera was built without CUDA)")  # fmt: skip
        self.works("generate", *self.model[:2], "--raw", "-p", "x", "-n", "1", "--device", "auto")

    def test_row_091_driver_too_old(self):
        self.skipTest("needs a driver older than the toolkit")

    def test_row_092_visible_devices(self):
        if not self.has_gpu():
            self.skipTest("needs a GPU to hide")
        self.environment["CUDA_VISIBLE_DEVICES"] = ""
        self.refused("generate", *self.model[:2], "--raw", "-p", "x", "--device", "cuda", words="")

    def test_row_093_gpu_too_old(self):
        self.skipTest("needs a GPU of compute capability below 8.0")

    def test_row_094_does_not_fit(self):
        folder = self.folder_with(max_position_embeddings=1 << 30)
        result = self.measured("generate", *self.flags(folder), "--raw", "-p", "x", "-c", 1 << 30)
        self.assertEqual(result.code, 1)
        self.assertIn("error: the model does not fit in memory\n", result.err)
        for row in ("weights", "KV cache", "activations", "free", "in use"):
            self.assertRegex(result.err, rf"\n  {row} +[0-9.]+ GiB")
        self.assertRegex(result.err, r"\nhint: --ctx-size \d+ fits")
        self.assert_harmless(result)

    def test_row_095_memory_taken_meanwhile(self):
        self.skipTest("needs a GPU that another process fills; nothing is allocated after loading")

    def test_row_096_gpu_fails(self):
        self.skipTest("needs a GPU that fails")

    def test_row_097_a_peer_dies(self):
        self.skipTest("tessera runs on one GPU")


class CommandLine(Row):
    def test_row_098_flags_that_mean_nothing(self):
        for arguments, words in [
            (["--frobnicate"], "--frobnicate"),
            (["-p"], "--prompt"),
            (["-p", "x", "--temp", "abc"], ["--temp", "'abc'"]),
            (["-p", "x", "-f", "y"], ["--prompt", "--file"]),
        ]:
            self.refused("generate", *self.model, *arguments, words=words, code=2,
                         hint="see 'tessera generate --help'")  # fmt: skip

    def test_row_099_chat_without_a_terminal(self):
        result = self.works("chat", *self.model, "-n", "2", stdin="hello\nagain\n")
        self.assertNotIn("> ", result.out)
        self.assertEqual(self.works("chat", *self.model, stdin="").out, "")


class Folders(Row):
    def test_a_folder_whose_name_steers_a_terminal(self):
        folder = self.folder_with("a\x1b[2J\u009b\u202eb")
        shown = "a\\x1b[2J\\xc2\\x9b\\xe2\\x80\\xaeb"
        for arguments in (["inspect"], ["inspect", "--json"], ["inspect", "-v"]):
            result = self.works(*arguments, *self.flags(folder))
            self.assert_harmless(result)
        self.assertIn(shown, self.works("inspect", *self.flags(folder)).out)
        edit_json(folder / "config.json", hidden_size=0)
        self.assertIn(shown, self.folder_refused_by_name(folder).err)

    def folder_refused_by_name(self, folder):
        return self.refused("inspect", *self.flags(folder), words="hidden_size")
