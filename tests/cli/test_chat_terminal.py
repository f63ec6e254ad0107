"""tessera chat on a terminal."""

import re
import signal

from support import Case

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class OnTerminal(Case):
    def chat(self, *arguments, flags=None):
        terminal = self.terminal("chat", *(flags or self.model), *arguments)
        terminal.expect("Ctrl-D leaves")
        terminal.expect_prompt()
        return terminal

    def ask(self, terminal, text):
        terminal.send(text + "\r")
        terminal.expect(r"gen \d+ tok")
        terminal.expect_prompt()

    def leave(self, terminal):
        terminal.send("\x04")
        self.assertEqual(terminal.exit_code(), 0)


class Conversation(OnTerminal):
    def test_a_question_and_its_answer(self):
        terminal = self.chat("-n", "8")
        self.ask(terminal, "hello")
        self.leave(terminal)

    def test_empty_lines_are_ignored(self):
        terminal = self.chat("-n", "8")
        terminal.send("\r   \r")
        terminal.expect_prompt()
        terminal.expect_prompt()
        self.assertNotIn("gen", terminal.seen)
        self.leave(terminal)

    def test_help_and_exit(self):
        terminal = self.chat()
        terminal.send("/help\r")
        for command in ("/exit", "/clear", "/regen", "/undo", "/system", "/set", "/save"):
            terminal.expect(command)
        terminal.expect("Ctrl-C")
        terminal.send("/exit\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_unknown_command(self):
        terminal = self.chat()
        terminal.send("/frob\r")
        terminal.expect("unknown command /frob")
        terminal.expect("/help")
        terminal.expect_prompt()
        self.leave(terminal)

    def test_multi_line(self):
        terminal = self.chat("-n", "4")
        terminal.send('"""one\r')
        terminal.expect_prompt("... ")
        self.ask(terminal, 'two"""')
        terminal.send("/save kept.json\r")
        terminal.expect("saved")
        terminal.expect_prompt()
        self.assertIn(r"one\ntwo", (self.folder / "kept.json").read_text())
        self.leave(terminal)

    def test_interrupt_stops_the_answer(self):
        terminal = self.chat("--ignore-eos", flags=self.long_model())
        terminal.send("hello\r")
        terminal.expect("hello\r?\n.")  # the echo, and the first of the answer
        terminal.send("\x03")
        terminal.expect(r"gen \d+ tok", timeout=10)
        terminal.expect_prompt()
        self.leave(terminal)

    def test_interrupt_at_the_prompt(self):
        terminal = self.chat()
        terminal.send("half a line\x03")
        terminal.expect("Ctrl-D or /exit leaves")
        terminal.expect_prompt()
        terminal.send("\x03")
        terminal.expect("Ctrl-D or /exit leaves")
        terminal.expect_prompt()
        self.leave(terminal)

    def test_terminate_at_the_prompt(self):
        terminal = self.chat()
        terminal.signal(signal.SIGTERM)
        self.assertEqual(terminal.exit_code(), 128 + signal.SIGTERM)

    def test_history(self):
        terminal = self.chat("-n", "2")
        self.ask(terminal, "a memorable line")
        self.leave(terminal)
        history = self.folder / "home/.local/state/tessera/history"
        self.assertTrue(history.exists())
        terminal = self.chat("-n", "2")
        terminal.send("\x1b[A")  # up
        terminal.expect("a memorable line")
        terminal.send("\x15")  # clears the line
        self.leave(terminal)

    def test_history_follows_xdg(self):
        self.environment["XDG_STATE_HOME"] = str(self.folder / "state")
        terminal = self.chat("-n", "1")
        self.ask(terminal, "hi")
        self.leave(terminal)
        self.assertTrue((self.folder / "state/tessera/history").exists())

    def test_typed_umlauts_arrive(self):
        terminal = self.chat("-n", "1")
        self.ask(terminal, "Grüße")
        terminal.send("/save kept.json\r")
        terminal.expect("saved")
        terminal.expect_prompt()
        self.assertIn("Grüße", (self.folder / "kept.json").read_text())
        self.leave(terminal)


class Colour(OnTerminal):
    def chat_once(self):
        terminal = self.chat("-n", "2")
        self.ask(terminal, "hello")
        self.leave(terminal)
        return terminal.seen

    def test_on_a_terminal(self):
        self.assertRegex(self.chat_once(), COLOUR)

    def test_no_color(self):
        self.environment["NO_COLOR"] = "1"
        self.assertNotRegex(self.chat_once(), COLOUR)

    def test_dumb_terminal(self):
        self.environment["TERM"] = "dumb"
        self.assertNotRegex(self.chat_once(), COLOUR)
