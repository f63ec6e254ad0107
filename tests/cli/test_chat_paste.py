"""A paste is one message, whatever is in it, and shown before it is sent."""

import signal

from chat_terminal import PASTE, PASTE_END, ChatCase, modes_of_new_terminal

ON, OFF = "\x1b[?2004h", "\x1b[?2004l"


class OneMessage(ChatCase):
    def paste_and_send(self, text):
        terminal = self.chat("-n", "2")
        terminal.paste(text)
        self.ask(terminal, "")
        return terminal

    def test_several_lines(self):
        terminal = self.chat("-n", "2")
        terminal.paste("first\nsecond\n\n  fourth")
        terminal.expect_screen("> first", "  second", "", "    fourth")
        self.assertNotIn("\x1b[?2004l", terminal.seen)
        self.ask(terminal, " and more")
        said = self.messages(terminal)
        self.assertEqual(len(said), 2)
        self.assertEqual(said[0], "first\nsecond\n\n  fourth and more")
        self.leave(terminal)

    def test_lines_that_begin_with_a_slash_are_text(self):
        terminal = self.paste_and_send("/exit\n/clear\nhello\n/exit")
        self.assertEqual(self.messages(terminal)[0], "/exit\n/clear\nhello\n/exit")
        self.leave(terminal)

    def test_quotes_that_begin_a_message_elsewhere_are_text(self):
        terminal = self.paste_and_send('"""a docstring\nof two lines')
        self.assertEqual(self.messages(terminal)[0], '"""a docstring\nof two lines')
        self.leave(terminal)

    def test_one_line_is_as_if_typed(self):
        terminal = self.chat()
        terminal.paste("/frob\n")
        terminal.send("\r")
        terminal.expect("unknown command /frob")
        terminal.expect_prompt()
        self.leave(terminal)

    def test_into_the_middle_of_a_line(self):
        terminal = self.chat("-n", "2")
        terminal.send("beginend\x1b[D\x1b[D\x1b[D")
        terminal.paste(" a\nb ")
        terminal.expect_screen("> begin a", "  b end")
        self.ask(terminal, "")
        self.assertEqual(self.messages(terminal)[0], "begin a\nb end")
        self.leave(terminal)

    def test_in_pieces(self):
        terminal = self.chat("-n", "2")
        for piece in (PASTE[:3], PASTE[3:] + "one\r", "two", "\r/exit", PASTE_END[:2], PASTE_END[2:]):
            terminal.send(piece)
        terminal.expect_screen("> one", "  two", "  /exit")
        self.ask(terminal, "")
        self.assertEqual(self.messages(terminal)[0], "one\ntwo\n/exit")
        self.leave(terminal)

    def test_line_ends_of_other_systems(self):
        terminal = self.chat("-n", "2")
        terminal.send(PASTE + "one\r\ntwo\nthree" + PASTE_END)
        self.ask(terminal, "")
        self.assertEqual(self.messages(terminal)[0], "one\ntwo\nthree")
        self.leave(terminal)

    def test_control_characters_are_left_out(self):
        terminal = self.chat("-n", "2")
        terminal.send(PASTE + "red \x1b[31mtext\x07\tend\r2" + PASTE_END)
        terminal.expect_screen("> red [31mtext    end", "  2")
        self.ask(terminal, "")
        self.assertEqual(self.messages(terminal)[0], "red [31mtext\tend\n2")
        self.leave(terminal)

    def test_while_an_answer_is_written(self):
        terminal = self.chat("--ignore-eos", flags=self.long_model())
        terminal.send("hello\r")
        terminal.expect("hello\r\n.")
        terminal.paste("next\n/exit")
        terminal.signal(signal.SIGINT)
        terminal.expect_screen("> next", "  /exit")
        terminal.send("\x03")
        terminal.expect("Ctrl-D or /exit leaves")
        terminal.expect_prompt()
        self.leave(terminal)

    def test_taller_than_the_screen(self):
        self.rows = 10
        terminal = self.chat("-n", "2", "-c", "256")
        lines = [f"line {number}" for number in range(30)]
        terminal.paste("\n".join(lines))
        terminal.wait_for_screen(lambda screen: screen.current_line() == "  line 29")
        self.assertEqual([line.strip() for line in terminal.screen.visible()], lines[-10:])
        terminal.send("\x08\x08\x08\x08\x08\x08\x08\x08")  # the last line and its newline
        terminal.expect_line("  line 28")
        terminal.send("\r")
        # What was sent can be read in full.
        sent = "> line 0\n  " + "\n  ".join(lines[1:29])
        terminal.wait_for_screen(lambda screen: sent in screen.text())
        terminal.expect_line(">")
        self.leave(terminal)


class Marks(ChatCase):
    """The terminal is asked to mark pastes while tessera has it, and not a moment longer."""

    def assert_given_back(self, terminal):
        self.assertEqual(terminal.seen.count(ON), terminal.seen.count(OFF))
        self.assertGreater(terminal.seen.rfind(OFF), terminal.seen.rfind(ON))
        self.assertFalse(terminal.screen.marks_pastes)
        self.assertEqual(terminal.modes(), modes_of_new_terminal())

    def started(self):
        terminal = self.start_on_terminal(self.command("chat", *self.model, "-n", "2"))
        terminal.expect("Ctrl-D leaves")
        terminal.expect_prompt()
        self.assertTrue(terminal.screen.marks_pastes)
        return terminal

    def test_off_at_the_end(self):
        for last in ("\x04", "/exit\r"):
            with self.subTest(last=last):
                terminal = self.started()
                terminal.send(last)
                self.assertEqual(terminal.exit_code(), 0)
                self.assert_given_back(terminal)

    def test_off_at_a_signal(self):
        terminal = self.started()
        terminal.signal(signal.SIGTERM)
        self.assertEqual(terminal.exit_code(), 128 + signal.SIGTERM)
        self.assert_given_back(terminal)

    def test_off_when_it_hangs_up(self):
        terminal = self.started()
        terminal.signal(signal.SIGHUP)
        self.assertEqual(terminal.exit_code(), -signal.SIGHUP)
        self.assert_given_back(terminal)

    def test_off_when_a_second_signal_ends_it_at_once(self):
        terminal = self.started()
        terminal.signal(signal.SIGSTOP)  # both wait, and come one right after the other
        terminal.signal(signal.SIGTERM)
        terminal.signal(signal.SIGINT)
        terminal.signal(signal.SIGCONT)
        self.assertIn(terminal.exit_code(), (128 + signal.SIGTERM, 128 + signal.SIGINT))
        self.assertFalse(terminal.screen.marks_pastes)
        self.assertEqual(terminal.modes(), modes_of_new_terminal())

    def test_off_at_an_error(self):
        command = " ".join(self.command("chat", *self.model, "-n", "2"))
        terminal = self.start_on_terminal(["/bin/sh", "-c", f"exec {command} >/dev/full"])
        terminal.expect_prompt()
        terminal.send("hello\r")
        terminal.expect("No space left")
        self.assertEqual(terminal.exit_code(), 1)
        self.assert_given_back(terminal)
