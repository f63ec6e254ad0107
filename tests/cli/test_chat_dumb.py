"""A terminal that understands no escape sequences (TERM=dumb), as in an editor's shell window."""

import signal

from chat_terminal import ChatCase


class Dumb(ChatCase):
    def setUp(self):
        super().setUp()
        self.environment["TERM"] = "dumb"

    def start_chat(self, *arguments, flags=None):
        terminal = self.start_on_terminal(self.command("chat", *(flags or self.model), *arguments))
        terminal.expect("Ctrl-D leaves")
        terminal.expect("> ")
        return terminal

    def leave(self, terminal):
        terminal.send("\x04")
        self.assertEqual(terminal.exit_code(), 0)
        self.assertNotIn("\x1b", terminal.seen)

    def test_a_conversation(self):
        terminal = self.start_chat("-n", "8", "--stats")
        for line in ("hello", "/help", "/frob", "Gr\u00fc\u00dfe", "", "/set stats off"):
            terminal.send(line + "\n")
            terminal.expect(r"\n> ")
        self.leave(terminal)

    def test_the_kernel_corrects_the_line(self):
        terminal = self.start_chat("-n", "1")
        terminal.send("helloo\x7f\n")
        terminal.expect(r"\n> ")
        terminal.send("/save kept.json\n")
        terminal.expect("saved")
        terminal.expect(r"\n> ")
        self.assertIn('"hello"', (self.folder / "kept.json").read_text())
        self.leave(terminal)

    def test_interrupts(self):
        terminal = self.start_chat("--ignore-eos", flags=self.long_model())
        terminal.send("half\x03")
        terminal.expect("Ctrl-D or /exit leaves")
        terminal.expect("> ")
        terminal.send("hello\n")
        terminal.expect("hello\r\n.")
        terminal.send("\x03")
        terminal.expect(r"\n> ")
        self.leave(terminal)

    def test_terminate(self):
        terminal = self.start_chat()
        terminal.signal(signal.SIGTERM)
        self.assertEqual(terminal.exit_code(), 128 + signal.SIGTERM)
        self.assertNotIn("\x1b", terminal.seen)
