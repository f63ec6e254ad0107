"""Ctrl-C, Ctrl-D and Ctrl-Z in a chat."""

import signal
import termios
import time

from chat_terminal import ChatCase
from support import TIMEOUT_SECONDS


class Interrupt(ChatCase):
    def test_stops_the_answer(self):
        terminal = self.chat("--ignore-eos", "--stats", flags=self.long_model())
        terminal.send("hello\r")
        terminal.expect("hello\r\n.")  # the echo, and the first of the answer
        terminal.send("\x03")
        terminal.expect(r"gen \d+ tok", timeout=10)
        terminal.expect_prompt()
        self.leave(terminal)

    def test_the_kernel_discards_nothing_of_an_answer(self):
        def discards():
            return not terminal.modes() & termios.NOFLSH

        terminal = self.chat("--ignore-eos", flags=self.long_model())
        self.assertTrue(discards(), "what was typed before Ctrl-C at the prompt")
        terminal.send("hello\r")
        terminal.expect("hello\r\n.")
        self.assertFalse(discards())
        terminal.send("/help\x03")
        terminal.expect_prompt()
        terminal.expect("/help")  # typed before it, and not lost either
        self.assertTrue(discards())
        terminal.send("\r")
        terminal.expect("/exit")
        terminal.expect_prompt()
        self.leave(terminal)

    def test_clears_the_line(self):
        terminal = self.chat("-n", "1")
        for _ in range(2):
            terminal.send("half a line\x03")
            terminal.expect("Ctrl-D or /exit leaves")
            terminal.expect_prompt()
            terminal.expect_line(">")
        self.ask(terminal, "whole")
        self.assertEqual(self.messages(terminal)[0], "whole")
        self.leave(terminal)

    def test_in_quotes_gives_the_message_up(self):
        terminal = self.chat("-n", "1")
        terminal.send('"""half\r')
        terminal.expect_prompt("... ")
        terminal.send("a message\x03")
        terminal.expect("leaves")
        self.ask(terminal, "whole")
        self.assertEqual(self.messages(terminal)[0], "whole")
        self.leave(terminal)

    def test_end_of_input_leaves_only_an_empty_line(self):
        terminal = self.chat("-n", "1")
        terminal.send("ab\x1b[D\x04")  # there it deletes
        terminal.expect_line("> a")
        terminal.send("\x7f\x04")
        self.assertEqual(terminal.exit_code(), 0)

    def test_end_of_input_in_quotes_leaves_without_the_message(self):
        terminal = self.chat("-n", "1", "--stats-json", "stats")
        terminal.send('"""half\r')
        terminal.expect_prompt("... ")
        self.leave(terminal)
        self.assertFalse((self.folder / "stats").exists(), "nothing was answered")

    def test_terminate_at_the_prompt(self):
        terminal = self.chat()
        terminal.signal(signal.SIGTERM)
        self.assertEqual(terminal.exit_code(), 128 + signal.SIGTERM)


class Suspend(ChatCase):
    """In a shell with jobs, as Ctrl-Z is used."""

    def in_a_shell(self, *arguments, flags=None):
        self.environment["PS1"] = "shell$ "
        terminal = self.start_on_terminal(["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"])
        terminal.expect(r"shell\$ ")
        self.modes_of_shell = terminal.modes()
        terminal.send(" ".join(self.command("chat", *(flags or self.model), *arguments)) + "\r")
        terminal.expect("Ctrl-D leaves")
        terminal.expect_prompt()
        return terminal

    def stop(self, terminal):
        terminal.send("\x1a")
        terminal.expect("Stopped")
        terminal.expect(r"shell\$ ")
        self.assertFalse(terminal.screen.marks_pastes)
        self.assertEqual(terminal.modes(), self.modes_of_shell)

    def continue_(self, terminal):
        """Returns where in `seen` the chat goes on."""
        terminal.send("fg\r")
        return terminal.expect(r"chat [^\n]*\n").end()

    def leave_shell(self, terminal):
        terminal.send("\x04")
        terminal.expect(r"shell\$ ")
        terminal.send("exit $?\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_the_prompt_comes_back_once_with_what_was_typed(self):
        terminal = self.in_a_shell("-n", "1")
        terminal.send("half a")
        terminal.expect_line("> half a")
        self.stop(terminal)
        self.continue_(terminal)
        terminal.expect_line("> half a")
        self.assertTrue(terminal.screen.marks_pastes)
        terminal.send(" line\x1b[D\x1b[D\x1b[D\x1b[DL")
        terminal.expect_line("> half a Lline")
        self.assertEqual(terminal.screen.text().count("> half a"), 2)  # before and after
        self.ask(terminal, "")
        self.assertEqual(self.messages(terminal)[0], "half a Lline")
        self.leave_shell(terminal)

    def test_the_prompt_comes_back_once_without_a_shell(self):
        terminal = self.chat("-n", "1")
        terminal.send("half")
        terminal.expect_line("> half")
        terminal.signal(signal.SIGCONT)
        terminal.expect("> half")  # once more, ...
        terminal.expect_line("> half")  # ... in the same place
        terminal.send(" a line")
        terminal.expect_line("> half a line")
        self.ask(terminal, "")
        self.assertEqual(self.messages(terminal)[0], "half a line")
        self.leave(terminal)

    def test_several_lines_come_back(self):
        terminal = self.in_a_shell("-n", "1")
        terminal.paste("one\ntwo")
        terminal.expect_screen("> one", "  two")
        self.stop(terminal)
        self.continue_(terminal)
        terminal.expect_screen("> one", "  two")
        terminal.send("\x03")
        terminal.expect("leaves")
        terminal.expect_prompt()
        self.leave_shell(terminal)

    def test_an_empty_prompt_comes_back_once(self):
        terminal = self.in_a_shell("-n", "1")
        for _ in range(2):
            self.stop(terminal)
            start = self.continue_(terminal)
            terminal.expect_line(">")
            self.ask(terminal, "x")
            self.assertEqual(terminal.seen[start:].count("> \r"), 2)  # this one and the next
        self.leave_shell(terminal)

    def test_during_an_answer(self):
        terminal = self.in_a_shell("--ignore-eos", flags=self.long_model())
        terminal.send("hello\r")
        terminal.expect("hello\r\n.")
        self.stop(terminal)
        self.continue_(terminal)
        terminal.expect(".")  # it goes on
        self.assertTrue(terminal.screen.marks_pastes)
        terminal.send("\x03")
        start = terminal.expect(r"\n> ").start()
        terminal.send("once")
        terminal.expect_line("> once")
        self.assertEqual(terminal.seen[start:].count("> \r"), 1)
        terminal.send("\x03")
        terminal.expect("leaves")
        terminal.expect_prompt()
        self.leave_shell(terminal)

    def test_an_answer_that_ends_in_the_background(self):
        terminal = self.in_a_shell("--ignore-eos", "-n", "4000", flags=self.long_model())
        terminal.send("hello\r")
        terminal.expect("hello\r\n.")
        self.stop(terminal)
        terminal.send("bg\r")
        terminal.expect(r"&\r\n")
        self.wait_until_stopped(terminal)
        self.continue_(terminal)
        terminal.expect_prompt()
        self.assertTrue(terminal.screen.marks_pastes)
        terminal.send("x\x7fy")
        terminal.expect_line("> y")
        terminal.send("\x03")
        terminal.expect("leaves")
        terminal.expect_prompt()
        self.leave_shell(terminal)

    def wait_until_stopped(self, terminal):
        """Waits until the shell says so, which it does when it shows a prompt."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            terminal.send("\r")
            try:
                return terminal.expect("Stopped", timeout=0.2)
            except AssertionError:
                self.assertLess(time.monotonic(), deadline, "it still runs")
