"""tessera tokenize."""

import json
import pathlib
import shutil

from support import Case, edit_json, raw

MESSAGES = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi <|end|>"}]
JINJA = ("{{ bos_token }}{% for message in messages %}[{{ message.role }}] {{ message.content }}"
         "{{ eos_token }}\n\n{% endfor %}[assistant]")  # fmt: skip


class Tokenize(Case):
    @property
    def flags(self):
        """As self.model; no device is there to be chosen."""
        return self.model[:-2]

    def tokens(self, *arguments, **options):
        return json.loads(self.check("tokenize", *self.flags, *arguments, "--json", **options).out)

    def test_three_forms_say_the_same(self):
        as_json = self.tokens("-p", "once upon a time")
        ids = as_json["ids"]
        self.assertEqual(sorted(as_json), ["count", "ids", "pieces"])
        self.assertEqual(as_json["count"], len(ids))
        self.assertEqual("".join(as_json["pieces"]).replace("▁", " "), "<s> once upon a time")
        for flags in [], ["--ids"]:
            out = self.check("tokenize", *self.flags, "-p", "once upon a time", *flags).out
            self.assertEqual(out, " ".join(map(str, ids)) + "\n")
        lines = self.check("tokenize", *self.flags, "-p", "once upon a time", "--pieces").out
        expected = zip(map(str, ids), as_json["pieces"])
        self.assertEqual([tuple(line.split("\t")) for line in lines.splitlines()], list(expected))

    def test_text_from_flag_file_and_stdin(self):
        path = self.write("text.txt", "\ufefftwo\nlines\n")
        expected = self.tokens("-p", "two\nlines")
        self.assertEqual(self.tokens("-f", path), expected)
        for flags in ["-p", "-"], ["-f", "-"], []:
            self.assertEqual(self.tokens(*flags, stdin=path.read_bytes()), expected)

    def test_a_terminal_is_not_waited_for(self):
        terminal = self.terminal("tokenize", *self.flags)
        terminal.expect("no text given")
        self.assertEqual(terminal.exit_code(), 2)

    def test_texts_of_nothing(self):
        bos = self.tokens("-p", "")["ids"]
        self.assertEqual(len(bos), 1)
        self.assertEqual(self.tokens("-p", "", "--no-bos"), {"ids": [], "pieces": [], "count": 0})
        self.assertEqual(self.check("tokenize", *self.flags, "-p", "", "--no-bos").out, "\n")
        self.assertGreater(self.tokens("-p", " ")["count"], 1)

    def test_no_bos(self):
        with_bos = self.tokens("-p", "x")["ids"]
        self.assertEqual(self.tokens("-p", "x", "--no-bos")["ids"], with_bos[1:])
        self.assertNotIn(with_bos[0], with_bos[1:])

    def test_what_generate_reads(self):
        count = self.tokens("-p", "once upon a time")["count"]
        stats = self.folder / "stats.json"
        self.check("generate", *raw(self.model), "-p", "once upon a time", "-n", "1",
                   "--stats-json", stats)  # fmt: skip
        self.assertEqual(json.loads(stats.read_text())["prompt_tokens"], count)

    def test_pieces_stay_in_their_lines(self):
        # Bytes without a piece become pieces such as <0x1B>; a name of one may hold anything.
        folder = self.copy_model("named")
        edit_json(folder / "tokenizer_config.json", added_tokens_decoder={
            "319": {"content": "<\x1b\n>", "special": True}})  # fmt: skip
        template = self.write("template.jinja", "a<\x1b\n>b")
        chat = self.write("chat.json", json.dumps(MESSAGES))
        flags = ["-m", folder, "--chat-template", template, "--chat", chat]
        lines = self.check("tokenize", *flags, "--pieces").out.split("\n")
        self.assertIn("319\t<\\x1b\\x0a>", lines)
        shown = json.loads(self.check("tokenize", *flags, "--json").out)
        self.assertIn("<\x1b\n>", shown["pieces"])

    def test_not_utf8(self):
        result = self.check("tokenize", *self.flags, "-p", b"a\xffb", code=1)
        self.assert_one_error(result, "offset 1")
        self.assertEqual(self.tokens("-p", b"a\xffb", "--replace-invalid"), self.tokens("-p", "a\ufffdb"))

    def test_weights_are_not_read(self):
        folder = self.copy_model("light")
        (folder / "model.safetensors").unlink()
        self.check("tokenize", "-m", folder, "-p", "x")

    def test_flags_that_exclude_each_other(self):
        chat = self.write("chat.json", json.dumps(MESSAGES))
        for arguments in (["-p", "x", "-f", "y"], ["-p", "x", "--chat", chat],
                          ["-f", "x", "--chat", chat], ["-p", "x", "--ids", "--json"],
                          ["-p", "x", "--pieces", "--json"], ["-p", "x", "--render"],
                          ["--chat", chat, "--render", "--no-bos"],
                          ["--chat", chat, "--render", "--ids"]):  # fmt: skip
            with self.subTest(arguments=arguments):
                result = self.check("tokenize", *self.flags, *arguments, code=2)
                self.assert_one_error(result, "--")


class Chat(Case):
    def setUp(self):
        super().setUp()
        self.path = self.write("chat.json", json.dumps(MESSAGES))
        self.template = self.write("template.jinja", JINJA)
        self.flags = [*self.model[:2], "--chat-template", self.template]

    def render(self, path, **options):
        return self.check("tokenize", *self.flags, "--chat", path, "--render", **options).out

    def test_the_template_is_rendered(self):
        self.assertEqual(self.render(self.path), "<s>[system] Be kind.</s>\n\n"
                         "[user] Hi <|end|></s>\n\n[assistant]\n")  # fmt: skip

    def test_ids_of_a_chat(self):
        shown = json.loads(self.check("tokenize", *self.flags, "--chat", self.path, "--json").out)
        self.assertEqual(shown["pieces"].count("<s>"), 1)
        self.assertEqual(shown["pieces"].count("</s>"), 2)
        without = self.check("tokenize", *self.flags, "--chat", self.path, "--no-bos").out
        self.assertEqual([int(word) for word in without.split()], shown["ids"][1:])

    def test_a_template_without_bos_has_none(self):
        # As in transformers and vLLM; a text alone has it.
        self.write("plain.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}")
        self.write("one.json", json.dumps([{"role": "user", "content": "Hi there"}]))
        chat = self.check("tokenize", *self.flags, "--chat", "one.json",
                          "--chat-template", "plain.jinja").out  # fmt: skip
        text = self.check("tokenize", *self.flags, "-p", "Hi there").out
        self.assertEqual(chat.split(), text.split()[1:])

    def test_forms_of_a_chat(self):
        expected = self.render(self.path)
        for document in ({"messages": MESSAGES}, {"messages": MESSAGES, "temperature": 0.5},
                         [{**message, "content": [{"type": "text", "text": message["content"]}]}
                          for message in MESSAGES]):  # fmt: skip
            path = self.write("other.json", json.dumps(document))
            self.assertEqual(self.render(path), expected)
        self.assertEqual(self.render("-", stdin=json.dumps(MESSAGES)), expected)

    def test_bytes_that_are_no_text(self):
        self.path.write_bytes(b'[{"role": "user", "content": "caf\xe9"}]')
        result = self.check("tokenize", *self.flags, "--chat", self.path, code=1)
        self.assert_one_error(result, "not UTF-8 text")
        self.assertIn("--replace-invalid", result.err)
        shown = self.check("tokenize", *self.flags, "--chat", self.path, "--render",
                           "--replace-invalid").out  # fmt: skip
        self.assertIn("[user] caf\ufffd</s>", shown)

    def test_a_saved_chat(self):
        saved = self.folder / "saved.json"
        self.check("chat", *self.model, "-n", "1", stdin=f"Hi\n/save {saved}\n/exit\n")
        self.assertIn("[user] Hi</s>", self.render(saved))

    def test_what_a_template_refuses(self):
        self.template.write_text("{{ raise_exception('no thanks') }}")
        result = self.check("tokenize", *self.flags, "--chat", self.path, code=1)
        self.assert_one_error(result, "no thanks")

    def test_chats_that_are_none(self):
        for text, words in [
            ("[", "invalid JSON at byte"),
            ("3", "expected a list of messages"),
            ("[]", "messages is empty"),
            ("{}", "messages is missing"),
            ('[{"role": "user"}]', "messages[0].content is missing"),
            ('[{"role": "wizard", "content": "x"}]', "messages[0].role must be"),
            ('{"messages": [{"role": "user", "content": "x"}], "odd": 1}', "odd is not supported"),
        ]:
            with self.subTest(text=text):
                path = self.write("bad.json", text)
                result = self.check("tokenize", *self.flags, "--chat", path, code=1)
                self.assert_one_error(result, words)
                self.assertIn("bad.json: ", result.error_lines[0])


class BothFiles(Case):
    """The demo model with the tokenizer.model that its tokenizer.json was made of beside it."""

    TEXTS = ["", "Once upon a time, there was a little fox. It said: \"Who are you?\"", "  two  ",
             "a\n\n\tb", "<s> </s> <|end|><unk>", "été 中文 😀 ▁", "12345 6,789.0"]  # fmt: skip

    def setUp(self):
        super().setUp()
        self.path = self.folder / "demo"
        demo = pathlib.Path(self.demo[1])
        shutil.copytree(demo, self.path)
        shutil.copy(demo.parent / "demo_tokenizer.model", self.path / "tokenizer.model")
        self.json = json.loads((self.path / "tokenizer.json").read_text())

    def write_json(self, document):
        (self.path / "tokenizer.json").write_text(json.dumps(document))

    def shown(self, *arguments):
        out = self.check("tokenize", "-m", self.path, *arguments, "--json").out
        return json.loads(out)

    def test_both_give_the_same(self):
        texts = [*self.TEXTS, *pathlib.Path(__file__).read_text().split("\n\n")]
        for text in texts:
            path = self.write("text", text)
            self.assertEqual(self.shown("-f", path),
                             self.shown("-f", path, "--tokenizer", "tokenizer.model"), text)  # fmt: skip
        chat = self.write("chat.json", json.dumps(MESSAGES))
        self.assertEqual(self.shown("--chat", chat),
                         self.shown("--chat", chat, "--tokenizer", "tokenizer.model"))  # fmt: skip

    def test_tokenizer_json_is_taken_unless_told(self):
        self.json["model"]["merges"] = []
        self.write_json(self.json)
        self.assertIn("<s>|O|n|c|e", "|".join(self.shown("-p", "Once")["pieces"]))
        self.assertEqual(self.shown("-p", "Once", "--tokenizer", "tokenizer.model")["count"], 2)

    def test_a_file_elsewhere(self):
        elsewhere = self.folder / "other.json"
        (self.path / "tokenizer.json").rename(elsewhere)
        self.assertEqual(self.shown("-p", "Once", "--tokenizer", elsewhere),
                         self.shown("-p", "Once"))  # fmt: skip
        result = self.check("tokenize", "-m", self.path, "-p", "x", "--tokenizer", "none", code=1)
        self.assert_one_error(result, "there is no tokenizer none")

    def test_what_is_not_supported_names_the_other(self):
        self.json["model"]["type"] = "WordPiece"
        self.write_json(self.json)
        result = self.check("tokenize", "-m", self.path, "-p", "x", code=1)
        self.assert_one_error(result, "model.type is WordPiece")
        self.assertIn("--tokenizer tokenizer.model", result.err)
        (self.path / "tokenizer.model").unlink()
        result = self.check("tokenize", "-m", self.path, "-p", "x", code=1)
        self.assertNotIn("--tokenizer", result.err)
