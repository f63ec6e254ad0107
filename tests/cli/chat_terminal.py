"""tessera chat on a terminal whose screen can be looked at."""

import fcntl
import json
import os
import pty
import signal
import struct
import termios
import time

from screen import Screen
from support import TIMEOUT_SECONDS, Case, Terminal

UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
PASTE, PASTE_END = "\x1b[200~", "\x1b[201~"


def modes_of_new_terminal():
    """Those of any terminal before a program changes them, which tessera may do at once."""
    ours, theirs = pty.openpty()
    try:
        return termios.tcgetattr(ours)[3]
    finally:
        os.close(ours)
        os.close(theirs)


class ChatTerminal(Terminal):
    def __init__(self, command, folder, environment, rows, columns):
        self.screen = Screen(rows, columns)
        super().__init__(command, folder, environment)
        self.resize(rows, columns)

    def resize(self, rows, columns):
        while self._read(0):  # what was written for the size before
            pass
        self.screen.resize(rows, columns)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, size)

    def resize_while_stopped(self, rows, columns):
        """Nothing written for the size before is still on its way afterwards."""
        self.signal(signal.SIGSTOP)
        os.waitpid(self._pid, os.WUNTRACED)
        self.resize(rows, columns)
        self.signal(signal.SIGCONT)

    def send_bytes(self, data):
        os.write(self._descriptor, data)

    def send_long(self, text):
        """Sends more than a terminal holds at a time, and reads what is written meanwhile."""
        data = text.encode()
        os.set_blocking(self._descriptor, False)
        try:
            while data:
                try:
                    data = data[os.write(self._descriptor, data[:1000]) :]
                except BlockingIOError:
                    self._read(0.001)
                self._read(0)
        finally:
            os.set_blocking(self._descriptor, True)

    def paste(self, text):
        self.send(PASTE + text.replace("\n", "\r") + PASTE_END)

    def modes(self):
        return termios.tcgetattr(self._descriptor)[3]

    def wait_for_screen(self, accepts, timeout=TIMEOUT_SECONDS):
        """Waits until `accepts(screen)` holds."""
        deadline = time.monotonic() + timeout
        while not accepts(self.screen):
            if not self._read(deadline - time.monotonic()) and time.monotonic() > deadline:
                raise AssertionError(f"not to be seen in:\n{self.screen.text()}")

    def expect_line(self, line):
        """Waits until the cursor's row reads `line`."""
        self.wait_for_screen(lambda screen: screen.current_line() == line)

    def expect_screen(self, *lines):
        """Waits until the last rows read `lines`."""
        wanted = "\n".join(lines)
        self.wait_for_screen(lambda screen: ("\n" + screen.text()).endswith("\n" + wanted))

    def receive(self, text):
        super().receive(text)
        self.screen.feed(text)


class ChatCase(Case):
    rows, columns = 24, 80

    def start_on_terminal(self, command):
        terminal = ChatTerminal(command, self.folder, self.environment, self.rows, self.columns)
        self.addCleanup(terminal.close)
        return terminal

    def chat(self, *arguments, flags=None):
        command = self.command("chat", *(flags or self.model), *arguments)
        terminal = self.start_on_terminal(command)
        terminal.expect("Ctrl-D leaves")
        terminal.expect_prompt()
        return terminal

    def ask(self, terminal, text):
        """Sends a line and waits for the end of its answer."""
        terminal.send(text + "\r")
        terminal.expect(r"\n")
        terminal.expect_prompt("\n> ")

    def messages(self, terminal):
        """What has been said so far, as /save writes it, without the system message."""
        terminal.send("/save kept.json\r")
        terminal.expect("saved to")
        terminal.expect_prompt()
        saved = json.loads((self.folder / "kept.json").read_text())["messages"]
        return [message["content"] for message in saved if message["role"] != "system"]

    def leave(self, terminal):
        terminal.send("\x04")
        self.assertEqual(terminal.exit_code(), 0)
