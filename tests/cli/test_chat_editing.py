"""Editing a message: what is on the screen and what is sent agree."""

from chat_terminal import LEFT, RIGHT, ChatCase

BACKSPACE, DELETE = "\x7f", "\x1b[3~"
CLUSTERS = {
    "a letter with an accent": "e\u0301",
    "a family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "a flag": "\U0001f1e9\U0001f1ea",
    "a thumb with a skin tone": "\U0001f44d\U0001f3fd",
    "a Devanagari syllable": "\u0928\u093f",
    "a Hangul syllable of three letters": "\u1112\u1161\u11ab",
    "a wide character": "\u65e5",
}


class Editing(ChatCase):
    columns = 40

    def sent(self, terminal):
        self.ask(terminal, "")
        return self.messages(terminal)[0]

    def type_and_send(self, keys, line, message):
        terminal = self.chat("-n", "1")
        terminal.send(keys)
        terminal.expect_line("> " + line)
        self.assertEqual(self.sent(terminal), message)
        self.leave(terminal)

    def test_backspace_deletes_a_grapheme_cluster(self):
        terminal = self.chat("-n", "1")
        for name, cluster in CLUSTERS.items():
            with self.subTest(name=name):
                terminal.send("ab" + cluster)
                terminal.expect_line("> ab" + cluster)
                terminal.send(BACKSPACE)
                terminal.expect_line("> ab")
                terminal.send("c\r")
                terminal.expect_prompt("\n> ")
                self.assertEqual(self.messages(terminal)[-2], "abc")
        self.leave(terminal)

    def test_delete_and_the_arrows_take_a_grapheme_cluster(self):
        terminal = self.chat("-n", "1")
        for name, cluster in CLUSTERS.items():
            with self.subTest(name=name):
                terminal.send("a" + cluster + "bc" + LEFT * 3 + DELETE + "x" + RIGHT + "y")
                terminal.expect_line("> axbyc")
                terminal.send("\r")
                terminal.expect_prompt("\n> ")
                self.assertEqual(self.messages(terminal)[-2], "axbyc")
        self.leave(terminal)

    def test_the_screen_follows_zero_width_characters(self):
        self.type_and_send("abe\u0301xy" + LEFT + "Z" + BACKSPACE * 3, "aby", "aby")

    def test_words(self):
        self.type_and_send("one two three\x17\x1bb\x1bdfour\x05 five", "one four  five", "one four  five")

    def test_lines(self):
        self.type_and_send("world\x01hello \x05!\x15kept\x01\x0b\x19 twice \x19", "kept twice kept",
                           "kept twice kept")  # fmt: skip

    def test_long_lines_wrap(self):
        terminal = self.chat("-n", "1")
        text = "".join(chr(ord("a") + number % 26) for number in range(100))
        terminal.send(text)
        terminal.expect_screen("> " + text[:38], text[38:78], text[78:])
        terminal.send("\x01X")
        terminal.expect_screen("> X" + text[:37], text[37:77], text[77:])
        terminal.send("\x05" + BACKSPACE * 30)
        terminal.expect_screen("> X" + text[:37], text[37:70])
        self.assertEqual(self.sent(terminal), "X" + text[:70])
        self.leave(terminal)

    def test_a_line_as_wide_as_the_screen(self):
        terminal = self.chat("-n", "1")
        terminal.send("x" * 38)
        terminal.wait_for_screen(lambda screen: "> " + "x" * 38 in screen.text())
        terminal.send("y" + LEFT * 2 + "z" + BACKSPACE)
        terminal.expect_screen("> " + "x" * 38, "y")
        self.assertEqual(self.sent(terminal), "x" * 38 + "y")
        self.leave(terminal)

    def test_wide_characters_wrap_whole(self):
        terminal = self.chat("-n", "1")
        terminal.send("a" + "\u65e5" * 20 + BACKSPACE)
        terminal.expect_screen("> a" + "\u65e5" * 18, "\u65e5")
        self.leave_unsent(terminal)

    def test_a_cluster_goes_on_in_the_next_row(self):
        terminal = self.chat("-n", "1")
        man, woman, girl = CLUSTERS["a family"].split("\u200d")
        first_row = "> " + "x" * 34 + f"{man}\u200d{woman}\u200d"
        terminal.send("x" * 34 + CLUSTERS["a family"] + "ac" + LEFT + "b")
        terminal.expect_screen(first_row, girl + "abc")
        terminal.send(RIGHT + BACKSPACE * 4 + "y")
        terminal.expect_line("> " + "x" * 34 + "y")
        self.leave_unsent(terminal)

    def test_an_escape_before_a_key_does_not_spoil_it(self):
        self.type_and_send("ac\x1b" + LEFT + "b", "abc", "abc")

    def test_a_long_line_that_comes_at_once(self):
        """As from a terminal that puts no marks around pastes."""
        terminal = self.chat("-n", "1")
        terminal.send_long("x" * 30000)
        terminal.send("y")
        terminal.expect_line("x" * (30002 % 40) + "y")
        self.leave_unsent(terminal)

    def test_alt_enter_begins_a_line(self):
        terminal = self.chat("-n", "1")
        terminal.send("one\x1b\rtwo")
        terminal.expect_screen("> one", "  two")
        self.assertEqual(self.sent(terminal), "one\ntwo")
        self.leave(terminal)

    def test_clearing_the_screen_keeps_the_line(self):
        terminal = self.chat("-n", "1")
        terminal.send("half\x0c")
        terminal.wait_for_screen(lambda screen: screen.visible()[0] == "> half")
        self.leave_unsent(terminal)

    def test_bytes_that_are_no_text_are_dropped(self):
        terminal = self.chat("-n", "1")
        terminal.send_bytes(b"a\xffb\xe9c")
        terminal.expect_line("> abc")
        self.leave_unsent(terminal)

    def test_typed_umlauts_arrive(self):
        self.type_and_send("Gr\u00fc\u00dfe", "Gr\u00fc\u00dfe", "Gr\u00fc\u00dfe")

    def leave_unsent(self, terminal):
        terminal.send("\x03")
        terminal.expect("leaves")
        terminal.expect_prompt()
        self.leave(terminal)
