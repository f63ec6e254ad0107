"""Going back to messages sent before, in this chat and in earlier ones."""

import os

from chat_terminal import DOWN, UP, ChatCase


class History(ChatCase):
    @property
    def file(self):
        return self.folder / "home/.local/state/tessera/history"

    def write_history(self, *lines):
        self.file.parent.mkdir(parents=True)
        self.file.write_text("".join(line + "\n" for line in lines))

    def cleared(self, terminal):
        terminal.send("\x03")
        terminal.expect("leaves")
        terminal.expect_prompt()

    def test_in_a_later_chat(self):
        terminal = self.chat("-n", "1")
        self.ask(terminal, "a memorable line")
        self.leave(terminal)
        terminal = self.chat("-n", "1")
        terminal.send(UP)
        terminal.expect_line("> a memorable line")
        terminal.send("\x15")  # clears the line
        self.leave(terminal)

    def test_a_message_of_several_lines_is_one_entry(self):
        terminal = self.chat("-n", "1")
        self.ask(terminal, "before")
        terminal.paste("/one\n\ttwo \\ three")
        self.ask(terminal, "")
        self.leave(terminal)
        terminal = self.chat("-n", "1")  # read from the file
        terminal.send(UP)
        terminal.expect_screen("> /one", "      two \\ three")
        terminal.send(UP)
        terminal.expect_line("> before")
        terminal.send(DOWN)
        terminal.expect_screen("> /one", "      two \\ three")
        self.ask(terminal, "")
        self.assertEqual(self.messages(terminal)[0], "/one\n\ttwo \\ three")
        self.leave(terminal)

    def test_a_quoted_message_comes_back_whole(self):
        terminal = self.chat("-n", "1")
        terminal.send('"""one\r')
        terminal.expect_prompt("... ")
        self.ask(terminal, 'two"""')
        terminal.send('"""\r/quit\r')
        terminal.expect_prompt("... ")
        self.ask(terminal, '"""')
        self.ask(terminal, '"""/exit"""')
        terminal.send(UP)
        terminal.expect_line('> """/exit"""')
        terminal.send(UP)
        terminal.expect_line('> """/quit"""')
        terminal.send(UP)
        terminal.expect_screen("> one", "  two")
        self.cleared(terminal)
        self.leave(terminal)

    def test_what_was_typed_is_still_there_below(self):
        self.write_history("old")
        terminal = self.chat("-n", "1")
        terminal.send("a draft" + UP)
        terminal.expect_line("> old")
        terminal.send(DOWN)
        terminal.expect_line("> a draft")
        self.cleared(terminal)
        self.leave(terminal)

    def test_a_draft_that_was_not_sent_can_be_recalled(self):
        self.write_history("old")
        terminal = self.chat("-n", "1")
        terminal.send("a draft")
        terminal.expect_line("> a draft")
        self.cleared(terminal)
        terminal.send("another" + UP)  # looking for one, the person gives up
        terminal.expect_line("> a draft")
        self.cleared(terminal)
        for line in ("another", "a draft", "old"):
            terminal.send(UP)
            terminal.expect_line("> " + line)
        terminal.send("\x15")
        self.leave(terminal)
        self.assertEqual(self.file.read_text(), "old\n")

    def test_none_is_kept_where_none_is_wanted(self):
        self.write_history("old")
        terminal = self.chat("-n", "1", "--no-history")
        self.ask(terminal, "a secret")
        terminal.send(UP + UP)
        terminal.expect_line("> a secret")
        self.cleared(terminal)
        self.leave(terminal)
        self.assertEqual(self.file.read_text(), "old\n")

    def test_up_goes_through_the_lines_of_a_message_being_edited(self):
        self.write_history("old")
        terminal = self.chat("-n", "1")
        terminal.send("one\x1b\rtwo" + UP + "X")
        terminal.expect_line("> oneX")
        terminal.send(UP)
        terminal.expect_line("> old")
        self.cleared(terminal)
        self.leave(terminal)

    def test_is_bounded(self):
        self.write_history(*(f"line {number}" for number in range(1500)))
        terminal = self.chat("-n", "1")
        terminal.send(UP)
        terminal.expect_line("> line 1499")
        self.cleared(terminal)
        self.leave(terminal)
        lines = self.file.read_text().splitlines()
        self.assertEqual((len(lines), lines[0]), (1000, "line 500"))

    def test_repeated_messages_are_one_entry(self):
        terminal = self.chat("-n", "1")
        self.ask(terminal, "same")
        self.ask(terminal, "same")
        self.leave(terminal)
        self.assertEqual(self.file.read_text(), "same\n")
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)

    def test_files_of_older_versions_are_read(self):
        self.write_history("_HiStOrY_V2_", r"an\040old\040Gr\303\274\303\237e")
        terminal = self.chat("-n", "1")
        terminal.send(UP)
        terminal.expect_line("> an old Gr\u00fc\u00dfe")
        self.cleared(terminal)
        self.leave(terminal)

    def test_a_hostile_file_cannot_move_the_cursor(self):
        self.write_history(r"red\033[31m")
        terminal = self.chat("-n", "1")
        terminal.send(UP)
        terminal.expect_line(r"> red\x1b[31m")
        self.cleared(terminal)
        self.leave(terminal)

    def test_what_is_no_file_is_done_without(self):
        self.file.parent.mkdir(parents=True)
        os.mkfifo(self.file)
        terminal = self.chat("-n", "1")
        self.ask(terminal, "hi")
        terminal.send(UP)
        terminal.expect_line("> hi")
        self.cleared(terminal)
        self.leave(terminal)

    def test_follows_xdg(self):
        self.environment["XDG_STATE_HOME"] = str(self.folder / "state")
        terminal = self.chat("-n", "1")
        self.ask(terminal, "hi")
        self.leave(terminal)
        self.assertEqual((self.folder / "state/tessera/history").read_text(), "hi\n")
