#!/usr/bin/env python3
"""Memory ends while a person types in a chat: the terminal must be left as it was found.

terminal.py --tessera BIN --library libfailing_calls.so
"""

import argparse
import os
import pathlib
import pty
import select
import subprocess
import sys
import tempfile
import termios
import time

from scenarios import TIMEOUT_SECONDS, TINY_MODEL, environment_of

# Calls of malloc between the prompt and the failure: from the first key to the answer.
DISTANCES = (1, 10, 40, 200, 1000)
LOCAL_MODES = 3  # in what tcgetattr returns
PASTES_MARKED, PASTES_PLAIN = b"\x1b[?2004h", b"\x1b[?2004l"
MESSAGE = b"error: out of memory"


class Chat:
    """tessera chat on a terminal of its own, whose `fault_at`-th call of malloc fails."""

    def __init__(self, arguments, folder, fault_at=0):
        self._count = folder / "count"
        self._count.write_bytes(bytes(8))
        self._controller, self._terminal = pty.openpty()
        self._original = termios.tcgetattr(self._terminal)
        environment = environment_of(folder) | {
            "TERM": "xterm", "LD_PRELOAD": str(arguments.library.resolve()),
            "FAULT_CALL": "memory", "FAULT_AT": str(fault_at), "FAULT_ONWARD": "1",
            "FAULT_ERRNO": "12", "FAULT_COUNT": str(self._count),
        }  # fmt: skip
        self._process = subprocess.Popen(
            [str(arguments.tessera.resolve()), "chat", "-m", str(TINY_MODEL), "--chat-template",
             "llama2", "--device", "cpu", "--threads", "1", "-n", "4"],
            cwd=folder, env=environment, start_new_session=True,
            stdin=self._terminal, stdout=self._terminal, stderr=self._terminal)  # fmt: skip

    def wait_for_prompt(self):
        """Returns the number of calls until then, which is when the terminal gives single keys."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while termios.tcgetattr(self._terminal)[LOCAL_MODES] & termios.ICANON:
            if self._process.poll() is not None or time.monotonic() > deadline:
                sys.exit("no prompt has come")
            time.sleep(0.001)
        time.sleep(0.1)  # until it waits for keys
        return int.from_bytes(self._count.read_bytes(), sys.byteorder)

    def type(self, text):
        os.write(self._controller, text)

    def end(self):
        """What is wrong with the end of a process that had no memory, as a list of phrases."""
        code = self._process.wait(TIMEOUT_SECONDS)
        seen = b""
        while select.select([self._controller], [], [], 0.2)[0]:
            seen += os.read(self._controller, 1 << 16)
        problems = [] if code == 1 else [f"exit code {code}"]
        if seen.count(b"error:") != 1 or MESSAGE not in seen.splitlines():
            problems.append(f"not one line of error: {seen}")
        if termios.tcgetattr(self._terminal) != self._original:
            problems.append("the terminal is not as it was")
        if seen.rfind(PASTES_MARKED) > seen.rfind(PASTES_PLAIN):
            problems.append("pastes stay marked")
        return problems

    def kill(self):
        self._process.kill()
        self._process.wait()


def main():
    parser = argparse.ArgumentParser(description="Out of memory in a chat on a terminal.")
    parser.add_argument("--tessera", required=True, type=pathlib.Path)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="tessera-faults-") as folder:
        folder = pathlib.Path(folder)
        undisturbed = Chat(arguments, folder)
        num_calls = undisturbed.wait_for_prompt()
        undisturbed.kill()
        for distance in DISTANCES:
            chat = Chat(arguments, folder, fault_at=num_calls + distance)
            chat.wait_for_prompt()
            chat.type(b"hello\n")
            problems = chat.end()
            print(f"{distance} calls after the prompt: {', '.join(problems) or 'in order'}")
            failed |= bool(problems)
    sys.exit(failed)


if __name__ == "__main__":
    main()
