"""Tab completes commands and names of files."""

from chat_terminal import ChatCase


class Completion(ChatCase):
    def setUp(self):
        super().setUp()
        self.terminal = self.chat("-n", "1")

    def tearDown(self):
        self.terminal.send("\x03")
        self.terminal.expect("Ctrl-D or /exit leaves")
        self.terminal.expect_prompt()
        self.leave(self.terminal)

    def complete(self, typed, line):
        self.terminal.send("\x15" + typed + "\t")
        self.terminal.send("|")  # where the cursor is
        self.terminal.expect_line("> " + line + "|")

    def test_commands(self):
        self.complete("/he", "/help ")
        self.complete("/sy", "/system ")
        self.complete("/s", "/s")
        self.complete("/frob", "/frob")

    def test_several_are_listed(self):
        self.terminal.send("/re\t")
        self.terminal.expect_screen("> /re", "/regen  /read", "> /re")

    def test_files(self):
        for name in ("report one.txt", "report two.txt", ".hidden", "Gr\u00fc\u00dfe"):
            self.write(name, "x")
        (self.folder / "texts").mkdir()
        self.write("texts/only", "x")
        for command in ("/read", "/save", "/load"):
            self.complete(f"{command} Gr", f"{command} Gr\u00fc\u00dfe")
            self.complete(f"{command} rep", f"{command} report ")
            self.complete(f"{command} te", f"{command} texts/")
            self.complete(f"{command} texts/", f"{command} texts/only")
            self.complete(f"{command} .h", f"{command} .hidden")
            self.complete(f"{command} {self.folder}/te", f"{command} {self.folder}/texts/")
        self.complete("/read no-such", "/read no-such")
        self.complete("/read /no/such/", "/read /no/such/")

    def test_files_as_in_a_shell(self):
        (self.folder / "home" / "texts").mkdir(parents=True)
        for name in ("home/report one.txt", "home/texts/only"):
            self.write(name, "x")
        self.complete("/read ~/te", "/read ~/texts/")
        self.complete("/read ~/texts/o", "/read ~/texts/only")
        self.complete('/read "~/rep', '/read "~/report one.txt"')
        self.complete("/read 'home/te", "/read 'home/texts/")
        self.complete('/read "no-such', '/read "no-such')

    def test_names_that_cannot_be_typed_are_left_out(self):
        self.write("odd\x1b[31m", "x")
        self.write("oddly", "x")
        self.complete("/read od", "/read oddly")

    def test_keys_of_set(self):
        self.complete("/set temp", "/set temperature ")
        self.complete("/set st", "/set stats ")
        self.complete("/set stats of", "/set stats off ")
        self.complete("/set think  on", "/set think  on ")
        self.complete("/set seed o", "/set seed o")

    def test_branches(self):
        self.terminal.send("\x15/branch other\r")
        self.terminal.expect("a new branch other")
        self.terminal.expect_prompt()
        self.complete("/branch m", "/branch main ")
        self.complete("/branch new", "/branch new")

    def test_not_in_messages(self):
        self.complete("he", "he")
        self.complete("say /he", "say /he")
