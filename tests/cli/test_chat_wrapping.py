"""Answers on a terminal wrap between words; elsewhere they are as the model wrote them."""

from chat_terminal import ChatCase

QUESTION = "Who are you?"


class Wrapping(ChatCase):
    def answer(self, columns):
        self.columns = columns
        terminal = self.chat("--temp", "0", flags=self.demo)
        self.ask(terminal, QUESTION)
        rows = terminal.screen.text().split("\n")
        self.leave(terminal)
        return rows[rows.index("> " + QUESTION) + 1 : -1]

    def test_lines_end_with_whole_words(self):
        plain = self.check("chat", *self.demo, "--temp", "0", stdin=QUESTION + "\n").out
        for columns in (20, 33, 60):
            with self.subTest(columns=columns):
                rows = self.answer(columns)
                self.assertGreater(len(rows), 1)
                self.assertEqual(" ".join(rows).split(), plain.split())
                for row, following in zip(rows, rows[1:]):
                    self.assertLessEqual(len(row), columns)
                    # No line ends before it must.
                    self.assertGreater(len(row) + 1 + len(following.split()[0]), columns)

    def test_not_in_a_pipe(self):
        self.environment["COLUMNS"] = "20"
        plain = self.check("chat", *self.demo, "--temp", "0", stdin=QUESTION + "\n").out
        self.assertEqual(plain.count("\n"), 1)
