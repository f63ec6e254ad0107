"""tessera chat on a terminal: a conversation from greeting to end."""

import re

from chat_terminal import ChatCase

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Conversation(ChatCase):
    def test_a_question_and_its_answer(self):
        terminal = self.chat("-n", "8")
        self.ask(terminal, "hello")
        self.leave(terminal)

    def test_empty_lines_are_ignored(self):
        terminal = self.chat("-n", "8", "--stats")
        terminal.send("\r   \r")
        terminal.expect_prompt()
        terminal.expect_prompt()
        self.assertNotIn("gen", terminal.seen)
        self.leave(terminal)

    def test_help_and_exit(self):
        for word in ("/exit", "exit", " /bye "):
            with self.subTest(word=word):
                terminal = self.chat()
                terminal.send("/help\r")
                for command in ("/exit", "/clear", "/regen", "/undo", "/system", "/set", "/save"):
                    terminal.expect(command)
                terminal.expect("Ctrl-C")
                terminal.send(word + "\r")
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
        self.assertEqual(self.messages(terminal)[0], "one\ntwo")
        self.leave(terminal)

    def test_a_full_context_is_said_once(self):
        terminal = self.chat("-n", "100")  # of 256
        terminal.send("word " * 100 + "\r")
        terminal.expect("your message does not fit in the context")
        self.ask(terminal, "hello " * 20)
        terminal.send("hello " * 20 + "\r")
        said = terminal.expect(
            r"the context is full, so your message was not kept: the conversation would take "
            r"(\d+) tokens and its answer 100, of 256\r\n"
        )
        self.assertGreater(int(said[1]), 156)
        terminal.expect("hint: .*/undo .*/clear ")
        terminal.expect_prompt()
        self.assertEqual(terminal.seen.count("context is full"), 1)
        self.leave(terminal)

    def test_undo_makes_room_in_a_full_context(self):
        terminal = self.chat("-n", "100")  # of 256
        self.ask(terminal, "hello " * 20)
        terminal.send("hello " * 20 + "\r")
        terminal.expect("context is full")
        terminal.expect("/undo .*/clear ")
        terminal.expect_prompt()
        terminal.send("/undo\r")
        terminal.expect_prompt()
        self.ask(terminal, "hi")
        self.assertEqual(self.messages(terminal)[0], "hi")
        self.leave(terminal)


class Statistics(ChatCase):
    LINE = r"gen \d+ tok"

    def test_only_on_request(self):
        terminal = self.chat("-n", "2")
        self.ask(terminal, "hello")
        self.assertNotRegex(terminal.seen, self.LINE)
        for setting, expectation in (("on", self.assertRegex), ("off", self.assertNotRegex)):
            terminal.send(f"/set stats {setting}\r")
            terminal.expect_prompt()
            before = len(terminal.seen)
            self.ask(terminal, "hello")
            expectation(terminal.seen[before:], self.LINE)
        self.leave(terminal)

    def test_flag(self):
        terminal = self.chat("-n", "2", "--stats")
        terminal.send("hello\r")
        terminal.expect(self.LINE)
        terminal.expect_prompt()
        terminal.send("/set stats maybe\r")
        terminal.expect("must be on or off, got 'maybe'")
        terminal.expect_prompt()
        self.leave(terminal)


class Colour(ChatCase):
    def chat_once(self):
        terminal = self.chat("-n", "2", "--stats")
        self.ask(terminal, "hello")
        self.leave(terminal)
        return terminal.seen

    def test_on_a_terminal(self):
        self.assertRegex(self.chat_once(), COLOUR)

    def test_no_color(self):
        self.environment["NO_COLOR"] = "1"
        self.assertNotRegex(self.chat_once(), COLOUR)
