"""What every row of the table of bad input asks of the command.

The rows are numbered 1 to 99; a test's name begins with its row's number, and test_table.py sees
that none is left out. A row that cannot be tried where the tests run is skipped with the reason.
"""

import os
import re
import subprocess
import tempfile
import time

import support
from rows import model_files

CPU_SECONDS = 1.0
RESIDENT_BYTES = 200 << 20
# Control characters other than newline and tab, and what changes the order of writing.
RAW_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


class Row(support.Case):
    idle = None  # see idle_resident_bytes()

    def folder_with(self, name="model", **config):
        """A copy of the tiny model, which a test may damage."""
        folder = self.copy_model(name)
        if config:
            support.edit_json(folder / "config.json", **config)
        return folder

    def weights_file(self, content):
        """The tiny model with these bytes as its weights."""
        folder = self.folder_with(f"weights{len(list(self.folder.iterdir()))}")
        (folder / "model.safetensors").write_bytes(content)
        return folder

    def flags(self, folder):
        return ["-m", folder, "--device", "cpu"]

    def measured(self, *arguments, stdin=b""):
        """Runs tessera; the result also has resident_bytes, the most it held."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, \
                tempfile.TemporaryFile() as err:  # fmt: skip
            given.write(stdin if isinstance(stdin, bytes) else stdin.encode())
            given.seek(0)
            process = self.start(*arguments, stdin=given, stdout=out, stderr=err)
            _, status, usage = wait4_within(process.pid, support.TIMEOUT_SECONDS)
            process.returncode = os.waitstatus_to_exitcode(status)
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode())
        result = support.Result(process.returncode, *texts, usage.ru_utime + usage.ru_stime)
        result.resident_bytes = usage.ru_maxrss * 1024
        return result

    def idle_resident_bytes(self):
        """What the command holds before it does anything: CUDA's libraries alone are 200 MB."""
        if Row.idle is None:
            Row.idle = self.measured("--version").resident_bytes
        return Row.idle

    def refused(self, *arguments, words, code=1, hint="", path="", stdin=b""):
        """Runs tessera and asserts the contract of a refusal; `words` may be one or several."""
        result = self.measured(*arguments, stdin=stdin)
        self.assertEqual(result.code, code, f"{arguments}\nstderr:\n{result.err[:2000]}")
        # What inspect can show of a folder it shows, whatever else is wrong with it.
        shows_rest = arguments[0] == "inspect" and result.out != ""
        self.assert_one_error(result, shows_rest=shows_rest)
        lines = [line for line in result.err.splitlines() if not line.startswith("warning: ")]
        self.assertEqual(lines[0], result.error_lines[0])
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, lines[0])
        self.assertIn(str(path), lines[0])
        self.assertLessEqual(len(lines), 2, result.err)
        for line in lines[1:]:
            self.assertTrue(line.startswith("hint: "), result.err)
        self.assertIn(hint, "".join(lines[1:]))
        self.assert_harmless(result)
        return result

    def assert_harmless(self, result):
        self.assertIsNone(RAW_CONTROLS.search(result.err + result.out), repr(result.err))
        if not support.is_sanitized():
            self.assertLess(result.resident_bytes - self.idle_resident_bytes(), RESIDENT_BYTES)
            self.assertLess(result.cpu_seconds, CPU_SECONDS)

    def folder_refused(self, folder, words, file="", hint="", code=1):
        """A folder that cannot be loaded, whichever subcommand reads it."""
        path = folder / file if file else folder
        arguments = ["--raw", "-p", "x", "-n", "1"]
        self.refused("generate", *self.flags(folder), *arguments,
                     words=words, path=path, hint=hint, code=code)  # fmt: skip
        return self.refused("inspect", *self.flags(folder),
                            words=words, path=path, hint=hint, code=code)  # fmt: skip

    def works(self, *arguments, stdin=b""):
        result = self.measured(*arguments, stdin=stdin)
        self.assertEqual(result.code, 0, f"{arguments}\nstderr:\n{result.err}")
        return result

    def answer(self, folder, *arguments):
        """What the model in the folder says after a prompt, always the same."""
        return self.works("generate", *self.flags(folder), "--raw", "-p", "hello", "-n", "8",
                          *arguments).out  # fmt: skip

    def weights_refused(self, content, words, hint=""):
        return self.folder_refused(self.weights_file(content), words, "model.safetensors", hint)

    def header_refused(self, header, words, data=b"", hint=""):
        return self.weights_refused(model_files.with_header(header, data), words, hint)


def wait4_within(pid, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done = os.wait4(pid, os.WNOHANG)
        if done[0] == pid:
            return done
        time.sleep(0.002)
    os.kill(pid, 9)
    os.wait4(pid, 0)
    raise subprocess.TimeoutExpired("tessera", seconds)
