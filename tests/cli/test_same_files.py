"""No command writes over a file that it reads."""

from support import Case

QUESTION = ["-n", "2", "-p", "x"]


class SameFiles(Case):
    """The files hold what they should not: nothing of them may be looked at before they are told
    apart."""

    def setUp(self):
        super().setUp()
        self.write("own", "keep me")
        (self.folder / "link").symlink_to("own")

    def assert_refused(self, command, *arguments, names):
        with self.subTest(command=command, names=names):
            result = self.check(command, "-m", self.model[1], "--device", "cpu", *arguments, code=2)
            self.assert_one_error(result, f"{names[0]} and {names[1]} are the same file: ")
            self.assertEqual((self.folder / "own").read_text(), "keep me")

    def test_statistics(self):
        stats = ["--stats-json", "link"]
        own = "own"
        for command, arguments in [("generate", QUESTION), ("chat", []),
                                   ("batch", ["-i", "in", "-o", "out"])]:  # fmt: skip
            for flag in ("--system-file", "--kv", "--chat-template", "--tokenizer"):
                self.assert_refused(command, *arguments, flag, own, *stats,
                                    names=(flag, "--stats-json"))  # fmt: skip
        self.assert_refused("generate", "-f", own, *stats, names=("--file", "--stats-json"))
        self.assert_refused("summarize", "--kv", own, *stats, names=("--kv", "--stats-json"))
        self.assert_refused("summarize", own, *stats, names=("the document", "--stats-json"))

    def test_output(self):
        output = ["-o", "./own"]
        self.assert_refused("summarize", "x", "--chat-template", "own", *output,
                            names=("--chat-template", "--output"))  # fmt: skip
        self.assert_refused("prefill", "own", *output, names=("the document", "--output"))
        self.assert_refused("prefill", "x", "--system-file", "own", *output,
                            names=("--system-file", "--output"))  # fmt: skip
        for flag in ("--system-file", "--kv"):
            self.assert_refused("batch", "-i", "in", "--overwrite", flag, "own", *output,
                                names=(flag, "output"))  # fmt: skip

    def test_files_of_the_model(self):
        folder = self.copy_model("model")
        (folder / "notes.txt").write_text("not the model's")
        (self.folder / "elsewhere").symlink_to(folder / "config.json")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        model = ["-m", folder, "--chat-template", "llama2", "--device", "cpu"]
        weights = next(path.name for path in folder.iterdir() if path.suffix == ".safetensors")
        own = "a file of the model"
        for name in ("model/config.json", "model/tokenizer.model", f"model/{weights}", "elsewhere"):
            for output, command in [
                ("--output", ["summarize", "own", "-o", name]),
                ("--stats-json", ["summarize", "own", "--stats-json", name]),
                ("--output", ["prefill", "own", "-o", name]),
                ("output", ["batch", "-i", "own", "--overwrite", "-o", name]),
                ("--stats-json", ["generate", *QUESTION, "--stats-json", name]),
                ("--stats-json", ["chat", "--stats-json", name]),
                ("--json", ["bench", "--json", name]),
            ]:
                result = self.check(*command, *model, code=2)
                self.assert_one_error(result, f"{own} and {output} are the same file: {name}")
        self.assertEqual({path.name: path.read_bytes() for path in folder.iterdir()}, before)
        self.check("summarize", "own", *model, "-n", "2", "-o", "model/notes.txt")

    def test_a_device_loses_nothing(self):
        self.check("generate", *self.model, *QUESTION, "--system-file", "/dev/null",
                   "--stats-json", "/dev/null")  # fmt: skip
