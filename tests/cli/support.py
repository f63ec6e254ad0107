"""Running tessera, with pipes or on a terminal of its own."""

import codecs
import dataclasses
import functools
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import time
import unittest

TIMEOUT_SECONDS = 60
LONG_CONTEXT = 65536

_tessera = None
_model = None
_demo = None


def configure(tessera, model, demo):
    global _tessera, _model, _demo
    _tessera = tessera.resolve()
    _model = model.resolve()
    _demo = demo.resolve() if demo and (demo / "config.json").exists() else None


def tiny_model():
    """The folder of the tiny model."""
    return _model


def expected_tensors(folder):
    """Name and shape of each tensor that the folder's config.json asks for."""
    command = [_tessera, "inspect", "-m", folder, "--expected-tensors", "--json"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


@functools.cache
def is_sanitized():
    """Whether tessera was built with the address sanitizer, which needs more memory and time."""
    return b"__asan_init" in _tessera.read_bytes()


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str
    cpu_seconds: float = 0.0

    @property
    def error_lines(self):
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


class Case(unittest.TestCase):
    """A test with a folder and an environment of its own."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="tessera-cli-")
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.folder / "home"),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm",
        }
        for name in ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    # --- models -------------------------------------------------------------------------------

    @property
    def model(self):
        """Flags for the tiny model, which has no chat template of its own."""
        return ["-m", str(_model), "--chat-template", "llama2", "--device", "cpu"]

    @property
    def demo(self):
        if _demo is None:
            self.skipTest("no demo model")
        return ["-m", str(_demo), "--device", "cpu"]

    def long_model(self, **config):
        """Flags for the tiny model with a context so long that an answer takes seconds."""
        folder = self.folder / "long"
        if not folder.exists():
            self.copy_model("long")
        edit_json(folder / "config.json", max_position_embeddings=LONG_CONTEXT, **config)
        return ["-m", str(folder), "--chat-template", "llama2", "--device", "cpu"]

    def copy_model(self, name):
        folder = self.folder / name
        shutil.copytree(_model, folder)
        return folder

    # --- running ------------------------------------------------------------------------------

    def command(self, *arguments):
        """Arguments may be text, numbers, paths, and bytes that are no text."""
        return [str(_tessera), *(os.fsdecode(argument) if isinstance(argument, bytes)
                                 else str(argument) for argument in arguments)]  # fmt: skip

    def start(self, *arguments, **streams):
        streams.setdefault("stdin", subprocess.DEVNULL)
        streams.setdefault("stdout", subprocess.PIPE)
        streams.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(
            self.command(*arguments), cwd=self.folder, env=self.environment, **streams
        )

    def run_tessera(self, *arguments, stdin=b"", **streams):
        if isinstance(stdin, str):
            stdin = stdin.encode()
        before = os.times()
        process = self.start(*arguments, stdin=subprocess.PIPE, **streams)
        out, err = process.communicate(stdin, timeout=TIMEOUT_SECONDS)
        after = os.times()
        cpu = (after.children_user + after.children_system) - (
            before.children_user + before.children_system
        )
        return Result(process.returncode, (out or b"").decode(), (err or b"").decode(), cpu)

    def check(self, *arguments, code=0, **options):
        """Runs tessera and asserts its exit code."""
        result = self.run_tessera(*arguments, **options)
        self.assertEqual(result.code, code, f"{arguments}\nstderr:\n{result.err}")
        return result

    def assert_one_error(self, result, text="", shows_rest=False):
        """One `error:` line that contains `text`, at most one hint, nothing on stdout; with
        `shows_rest` the rest of a description there, with the problem as a row."""
        if shows_rest:
            problem = result.error_lines[0].removeprefix("error: ")
            self.assertIn(f"\nproblem        {problem}\n", result.out)
        else:
            self.assertEqual(result.out, "")
        self.assertEqual(len(result.error_lines), 1, result.err)
        self.assertIn(text, result.error_lines[0])
        for trace in ("terminate called", "Aborted", "core dumped"):
            self.assertNotIn(trace, result.err)

    def terminal(self, *arguments):
        terminal = Terminal(self.command(*arguments), self.folder, self.environment)
        self.addCleanup(terminal.close)
        return terminal

    # --- files --------------------------------------------------------------------------------

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


class Terminal:
    """tessera on a pseudo-terminal."""

    def __init__(self, command, folder, environment):
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._position = 0
        self._code = None
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execve(command[0], command, environment)

    def send(self, text):
        os.write(self._descriptor, text.encode())

    def expect(self, pattern, timeout=TIMEOUT_SECONDS):
        """Waits for a regular expression after the last one found. Returns the match."""
        deadline = time.monotonic() + timeout
        while True:
            match = re.compile(pattern).search(self.seen, self._position)
            if match:
                self._position = match.end()
                return match
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"no {pattern!r} in {self.seen[self._position:]!r}")

    def expect_prompt(self, prompt="> "):
        """Waits until a line can be edited: the prompt is there and the terminal is raw."""
        self.expect(re.escape(prompt))
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while termios.tcgetattr(self._descriptor)[3] & termios.ICANON:
            if time.monotonic() > deadline:
                raise AssertionError("the terminal stays in line mode")
            time.sleep(0.001)

    def signal(self, number):
        os.kill(self._pid, number)

    def exit_code(self, timeout=TIMEOUT_SECONDS):
        deadline = time.monotonic() + timeout
        while self._read(deadline - time.monotonic()):
            pass
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def close(self):
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._descriptor)

    def _read(self, timeout):
        if timeout <= 0 or not select.select([self._descriptor], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # the other side is closed
            return False
        self.receive(self._decoder.decode(data))
        return bool(data)

    def receive(self, text):
        self.seen += text


def raw(flags):
    """The same model as `flags` name, continuing text itself: that goes with no chat template."""
    at = flags.index("--chat-template")
    return [*flags[:at], *flags[at + 2 :], "--raw"]


def edit_json(path, **changes):
    """Sets keys of a JSON file; None removes one."""
    document = json.loads(path.read_text())
    for key, value in changes.items():
        if value is None:
            document.pop(key, None)
        else:
            document[key] = value
    path.write_text(json.dumps(document))


def read_json_lines(path):
    # Of bytes: text has more ends of lines, such as U+0085, which an answer may hold.
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def read_records(path):
    """The records of a batch in the order of their requests; the file has them as they ended."""
    records = read_json_lines(path)
    return sorted(records, key=lambda record: int(record["id"].removeprefix("batch_req_")))
