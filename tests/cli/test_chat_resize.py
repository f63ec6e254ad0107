"""The window changes its size while a message is typed and while an answer is written."""

from chat_terminal import LEFT, ChatCase


class Typing(ChatCase):
    TEXT = "the quick brown fox jumps over the lazy dog"

    def expect_drawn(self, terminal, before_cursor, after_cursor, columns):
        text = "> " + before_cursor + after_cursor
        terminal.expect_screen(
            *(text[at : at + columns].rstrip() for at in range(0, len(text), columns))
        )
        # The last thing that drawing does.
        column = len("> " + before_cursor) % columns
        terminal.wait_for_screen(lambda screen: screen.column == column)

    def test_narrower_and_wider(self):
        terminal = self.chat("-n", "1")
        above = terminal.screen.text().rpartition("\n")[0]
        terminal.send(self.TEXT + LEFT * 8)
        self.expect_drawn(terminal, self.TEXT[:-8], self.TEXT[-8:], self.columns)
        for columns in (30, 20, 80):
            terminal.resize(24, columns)
            # Typing goes on at the same place.
            terminal.send("X")
            self.expect_drawn(terminal, self.TEXT[:-8] + "X", self.TEXT[-8:], columns)
            terminal.send("\x7f")
            self.expect_drawn(terminal, self.TEXT[:-8], self.TEXT[-8:], columns)
        terminal.send("Z")
        terminal.expect_line("> " + self.TEXT[:-8] + "Z" + self.TEXT[-8:])
        self.assertEqual(terminal.screen.text().rpartition("\n")[0], above)
        terminal.send("\r")
        terminal.expect_prompt("\n> ")
        self.assertEqual(self.messages(terminal)[0], self.TEXT[:-8] + "Z" + self.TEXT[-8:])
        self.leave(terminal)

    def test_a_resize_in_the_middle_of_a_paste(self):
        terminal = self.chat("-n", "1")
        terminal.send("\x1b[200~one\r")
        terminal.resize(24, 40)
        terminal.send("two\x1b[201~")
        terminal.expect_screen("> one", "  two")
        self.ask(terminal, "")
        self.assertEqual(self.messages(terminal)[0], "one\ntwo")
        self.leave(terminal)


class Answer(ChatCase):
    def test_wraps_at_the_new_width(self):
        terminal = self.chat("--ignore-eos", "--temp", "1", "--seed", "1", flags=self.demo)
        terminal.send("Tell me a story.\r")
        terminal.expect(r"story\.\r\n\w+ ")
        for columns in (32, 50):
            terminal.resize_while_stopped(24, columns)
            first = len(terminal.screen.lines) + 1  # after the line that was begun before
            terminal.wait_for_screen(lambda screen: len(screen.lines) > first + 20)
            rows = range(first, first + 20)
            lines = ["".join(terminal.screen.lines[row]).rstrip() for row in rows]
            # The terminal itself never had to go on in the next row, ...
            self.assertFalse(any(terminal.screen.continued[row] for row in rows), lines)
            self.assertGreater(max(map(len, lines)), columns - 10)  # ... though lines are long.
        terminal.send("\x03")
        terminal.expect_prompt("\n> ")
        self.leave(terminal)
