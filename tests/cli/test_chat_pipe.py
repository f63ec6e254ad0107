"""tessera chat without a terminal: a turn a line, answers on stdout, nothing else."""

import json
import os
import re

from support import Case


class Pipe(Case):
    def chat(self, text, *arguments, code=0, flags=None):
        flags = self.model if flags is None else flags
        return self.check("chat", *flags, "-n", "8", *arguments, stdin=text, code=code)

    def test_turns_and_answers(self):
        result = self.chat("hello\n\n   \nwho are you\n", "--stats", "--stats-json", "stats")
        stats = [json.loads(line) for line in (self.folder / "stats").read_text().splitlines()]
        self.assertEqual(len(stats), 2)
        self.assertNotIn("> ", result.out.replace("<", ""))
        self.assertNotIn("/help", result.out + result.err)
        self.assertEqual(result.err.count("| ttft"), 2)

    def test_the_cache_is_kept_between_turns(self):
        self.chat("hello\nagain\n", "--stats-json", "stats")
        first, second = map(json.loads, (self.folder / "stats").read_text().splitlines())
        self.assertEqual(first["cached_prompt_tokens"], 0)
        self.assertGreaterEqual(second["cached_prompt_tokens"], first["prompt_tokens"] - 1)

    def test_the_speed_is_of_the_tokens_that_were_computed(self):
        lines = self.chat("hello\nagain\n", "--stats", "--stats-json", "stats").err.splitlines()
        first, second = map(json.loads, (self.folder / "stats").read_text().splitlines())
        self.assertRegex(lines[0], r"^prompt {prompt_tokens} tok [\d.]+ tok/s \|".format(**first))
        self.assertRegex(lines[1], r"^prompt {prompt_tokens} tok \({cached_prompt_tokens} cached, "
                         r"{computed_prompt_tokens} computed at [\d.]+ tok/s\) \|".format(**second))

    def test_an_answer_stays_whether_or_not_its_statistics_can_be_written(self):
        result = self.chat("hello\n/save kept.json\n", "--stats-json", "/dev/full", code=3)
        self.assertIn("/dev/full: write failed", result.error_lines[0])
        self.assertEqual(len(json.loads((self.folder / "kept.json").read_text())["messages"]), 2)

    def test_quiet_says_what_was_asked_for_and_nothing_else(self):
        commands = ("/system S\n/set stats off\nhello\n/save a.json\n/load a.json\n/undo\n"
                    "/branch x\n/clear\n")  # fmt: skip
        loud, quiet = self.chat(commands), self.chat(commands, "-q")
        for words in ("system message set", "saved to", "loaded 3", "took back", "cleared"):
            self.assertIn(words, loud.err)
        self.assertEqual(quiet.err, "")
        self.assertIn("sampling ", self.chat("/show\n", "-q").err)

    def test_no_final_newline(self):
        self.assertNotEqual(self.chat("hello").out, "")

    def test_empty_input(self):
        result = self.chat("")
        self.assertEqual(result.out, "")

    def test_input_that_cannot_be_read(self):
        folder = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        process = self.start("chat", *self.model, stdin=folder)
        self.assertIn(b"standard input: Is a directory", process.communicate()[1])
        self.assertEqual(process.returncode, 1)

    def test_invalid_utf8_fails_its_turn_only(self):
        result = self.chat(b"caf\xe9\nhello\n", code=3)
        self.assertIn("offset 3", result.err)
        self.assertNotEqual(result.out, "")

    def test_multi_line(self):
        self.chat('"""one\ntwo"""\n', "--stats-json", "fenced")
        self.chat("/exit\n", "--stats-json", "none")
        self.assertEqual(len((self.folder / "fenced").read_text().splitlines()), 1)
        self.assertFalse((self.folder / "none").exists())

    def test_fences_on_lines_of_their_own(self):
        for text in ('"""\none\n\ntwo\n"""\n', '"""one\n\ntwo"""\n', '"""one\n\ntwo\n"""\n'):
            self.chat(text + "/save kept.json\n")
            kept = json.loads((self.folder / "kept.json").read_text())
            self.assertEqual(kept["messages"][0]["content"], "one\n\ntwo")
        self.assertEqual(self.chat('"""\n"""\n').out, "")

    def test_multi_line_without_an_end(self):
        self.chat('"""one\ntwo', "--stats-json", "stats")
        self.assertEqual(len((self.folder / "stats").read_text().splitlines()), 1)

    def test_full_disk_ends_the_chat(self):
        with open("/dev/full", "wb") as full:
            result = self.check("chat", *self.model, "-n", "2", stdin="a\nb\n", stdout=full, code=1)
        self.assert_one_error(result, "No space left")

    def test_unknown_command(self):
        result = self.chat("/frob\n", code=3)
        self.assert_one_error(result, "/frob")
        self.assertIn("/help", result.err)

    def test_words_that_leave(self):
        for word in ("exit", "quit", "bye", "/exit", " /exit ", "\t/quit", " exit "):
            with self.subTest(word=word):
                result = self.chat(f"hello\n{word}\nnever asked\n", "--stats-json", "stats")
                self.assertEqual(len((self.folder / "stats").read_text().splitlines()), 1)
                self.assertEqual(result.err, "")

    def test_words_that_leave_are_text_in_quotes(self):
        self.chat('"""exit"""\nexit\n', "--stats-json", "stats")
        self.assertEqual(len((self.folder / "stats").read_text().splitlines()), 1)

    def test_nothing_but_answers(self):
        result = self.chat("hello\n/help\n\x1b[200~one\ntwo\n")
        for text in (result.out, result.err):
            self.assertNotRegex(text, r"(^|\n)> ")
            self.assertNotIn("\x1b", text)

    def test_statistics_only_on_request(self):
        self.assertNotIn("ttft", self.chat("hello\n").err)
        self.assertIn("ttft", self.chat("/set stats\nhello\n").err)

    def test_a_byte_order_mark_is_no_part_of_a_message(self):
        self.chat(b"\xef\xbb\xbf/system S\n\xef\xbb\xbfhello\n/save kept.json\n")
        kept = json.loads((self.folder / "kept.json").read_text())
        contents = [message["content"] for message in kept["messages"]]
        self.assertEqual(contents[:2], ["S", "\ufeffhello"])  # it begins a text, nothing else

    def test_what_helps_when_the_context_is_full(self):
        clear = "/undo takes back the last exchange, /clear forgets all of them"
        start = "or start with --rope-scaling auto -c N or --on-overflow middle"
        system = f"/system TEXT sets a shorter system message, {start}"
        message = f"send a shorter message, {start}"
        for count in (400, 5000):  # what is so long is not even tokenised
            long = "word " * count
            for text, hint in [(f"{long}\n", message), (f"hello\n{long}\n", message),
                               (f"/system {long}\nhello\n", system),
                               (f"hello\n/system {long}\nhello\n", system)]:  # fmt: skip
                self.assertIn(f"hint: {hint}\n", self.chat(text, code=3).err)
        self.assertIn(f"hint: {clear}", self.chat(("word " * 30 + "\n") * 4, code=3).err)

    def test_a_longer_context_is_named_where_there_is_one(self):
        long = "word " * 200
        for flags, longer in [(("-c", "128"), "a larger -c (up to 256 tokens)"),
                              (("-c", "300", "--rope-scaling", "auto"), "a larger -c"),
                              ((), "--rope-scaling auto -c N")]:  # fmt: skip
            count = 1 if flags else 2
            result = self.chat(long * count + "\n", *flags, "-n", "150", code=3)
            self.assertIn(f"or start with {longer} or --on-overflow middle\n", result.err)
            result = self.chat(long * 2 + "\n", *flags, "--on-overflow", "middle", "-n", "1000",
                               code=3)  # fmt: skip
            self.assertTrue(result.err.endswith(f", or start with {longer}\n"), result.err)

    def test_an_answer_that_does_not_fit_is_said_so(self):
        result = self.chat("hello\n", "-n", "300", code=3)
        self.assertRegex(result.err, r"error: an answer of max_tokens does not fit in the context: "
                         r"the conversation would take \d+ tokens and its answer 300, of 256\n"
                         r"hint: /set max_tokens \d+ asks for a shorter answer; ")  # fmt: skip

    # From a file, so that the test itself stays small.
    def test_a_message_of_any_length_fails_its_turn_only(self):
        refusal = "error: your message is longer than 67108864 bytes"
        fence = b'"""'
        with open(self.folder / "typed", "wb") as typed:
            for before, after in [(b"", b"\n"), (fence + b"x\n", b"\n" + fence + b"\n"),
                                  (fence + b"x\n", fence + b"\n"), (fence, b"\nx" + fence + b"\n"),
                                  (fence, fence + b"\n")]:  # fmt: skip
                typed.write(before)
                for _ in range(65):
                    typed.write(b"a" * (1 << 20))
                typed.write(after)
            typed.write(b"hello\n")
        with open(self.folder / "typed", "rb") as typed:
            process = self.start("chat", *self.model, "-n", "8", stdin=typed)
            out, err = process.communicate()
        self.assertEqual(process.returncode, 3)
        self.assertEqual(err.decode().splitlines().count(refusal), 5)
        self.assertNotEqual(out, b"")

    def test_full_context_leaves_the_chat_usable(self):
        result = self.chat("word " * 300 + "\nhi\n", code=3)
        self.assertEqual(len(result.error_lines), 1)
        self.assertNotEqual(result.out, "")


class Commands(Case):
    def chat(self, text, *arguments, code=0):
        return self.check("chat", *self.model, "-n", "4", *arguments, stdin=text, code=code)

    def test_save_and_load(self):
        self.chat("/system Be brief.\nhello\n/save kept.json\n")
        kept = json.loads((self.folder / "kept.json").read_text())
        self.assertEqual([m["role"] for m in kept["messages"]], ["system", "user", "assistant"])
        self.assertEqual(kept["messages"][0]["content"], "Be brief.")
        self.chat("/load kept.json\n/undo\n/save undone.json\n")
        undone = json.loads((self.folder / "undone.json").read_text())
        self.assertEqual(undone["messages"], kept["messages"][:1])

    def test_save_replaces_nothing_but_files(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.assert_one_error(self.chat("/save pipe\n", code=3), "pipe: is not a regular file")
        self.assertTrue(pipe.is_fifo())

    def test_save_replaces_nothing_but_conversations(self):
        for content in ("important", "", "[]", '{"messages": 1}', b"\xff"):
            path = self.write("notes.txt", content)
            before = path.read_bytes()
            result = self.chat("hello\n/save notes.txt\n", code=3)
            self.assertEqual(result.error_lines, [
                "error: notes.txt: is no saved conversation, and stays as it is"])  # fmt: skip
            self.assertEqual(path.read_bytes(), before)
        self.write("kept.json", self.messages("user", "assistant", "user"))
        self.chat("hello\n/save kept.json\n")
        self.assertEqual(len(json.loads((self.folder / "kept.json").read_text())["messages"]), 2)

    def test_names_of_files_as_in_a_shell(self):
        home = self.folder / "home"
        home.mkdir()
        self.chat("hello\n/save ~/kept one.json\n")
        self.assertTrue((home / "kept one.json").exists())
        for name in ('"~/kept one.json"', "'home/kept one.json'", f'"{home}/kept one.json"'):
            self.assertIn("loaded 2 messages", self.chat(f"/load {name}\n").err)
        self.write('"odd"', "a message")
        self.chat('/read ""odd""\n')
        self.assert_one_error(self.chat('/read ""\n', code=3), "/read needs FILE")
        self.assert_one_error(self.chat('/read "\n', code=3), '": No such file')

    def test_clear_says_what_stays(self):
        result = self.chat("hello\n/clear\n/system S\n/clear\n")
        self.assertIn("cleared\n", result.err)
        self.assertIn("cleared; the system message stays\n", result.err)

    def test_clear_keeps_the_system_message(self):
        self.chat("/system S\nhello\n/clear\n/save kept.json\n")
        self.assertEqual(len(json.loads((self.folder / "kept.json").read_text())["messages"]), 1)

    def test_regen_answers_again(self):
        result = self.chat("hello\n/regen\n")
        half = len(result.out) // 2
        self.assertEqual(result.out[:half], result.out[half:])  # greedy
        self.assertIn("temperature is 0", result.err)
        self.write("kept.json", self.messages("user"))
        self.assertNotIn("temperature is 0", self.chat("/load kept.json\n/regen\n").err)

    def seeds(self, text, *arguments):
        return re.findall(r"seed (\d+)", self.chat(text, "--temp", "1", *arguments).err)

    def test_the_seed_stays_until_another_is_set(self):
        first, second = self.seeds("/show\n/set temperature 0\n/set temperature 1\n/show\n")
        self.assertEqual(first, second)
        text = "hello\n/regen\n/set top_k 5\n/show\n/set seed 1\n/show\n"
        self.assertEqual(self.seeds(text, "--seed", "1"), ["2", "1"])

    def test_a_conversation_without_a_middle_to_leave_out(self):
        text = "hello\n" * 20
        result = self.chat(text, "--on-overflow", "middle", "--max-tokens", "200", code=3)
        self.assertIn("; /undo takes back the last exchange", result.err)

    def test_save_leaves_the_file_of_a_prefill_alone(self):
        pages = ["--page-size", "16"]
        self.write("report", "The fox and the hen met at the well. " * 4)
        self.check("prefill", *self.model, *pages, "report", "-o", "talk.kv")
        before = (self.folder / "talk.kv").read_bytes()
        self.chat("/save talk\n", "--kv", "talk.kv", *pages)
        result = self.chat("Who?\n/save talk\n", "--kv", "talk.kv", *pages, code=3)
        self.assertIn("talk.kv: is a file of tessera prefill, and stays", result.error_lines[0])
        self.assertEqual((self.folder / "talk.kv").read_bytes(), before)
        self.assertEqual(len(json.loads((self.folder / "talk").read_text())["messages"]), 2)

    def test_read(self):
        self.write("message.txt", "from a file")
        self.chat("/read message.txt\n/save kept.json\n")
        kept = json.loads((self.folder / "kept.json").read_text())
        self.assertEqual(kept["messages"][0]["content"], "from a file")

    def test_set_and_show(self):
        result = self.chat("/set top-k 7\n/set temperature 0.5\n/show\n/stats\n")
        self.assertIn("top_k 7", result.err)
        self.assertIn("temperature 0.5", result.err)

    def test_help_fits_a_terminal(self):
        for line in self.chat("/help\n").err.splitlines():
            self.assertLessEqual(len(line), 80)

    def test_set_alone_lists_what_can_be_set(self):
        err = self.chat("/set min_tokens 3\n/set temperature 0.5\n/set stats\n/set\n/show\n").err
        for line in ("temperature        0.5", "repetition_penalty 1.0", "max_tokens         4",
                     "min_tokens         3", "stats              on",
                     "think              as the model does", "min_tokens   3"):  # fmt: skip
            self.assertIn(line + "\n", err)
        self.assertRegex(err, r"\nseed               \d+\n")

    def load(self, content, *expected):
        self.write("kept.json", content)
        result = self.chat("/load kept.json\nhello\n/save after.json\n", code=3 if expected else 0)
        for text in expected:
            self.assertIn(text, result.error_lines[0])
            self.assertIn("kept.json: ", result.error_lines[0])
            self.assertEqual(len(result.error_lines), 1)
        return json.loads((self.folder / "after.json").read_text())["messages"]

    def test_load_takes_a_list_of_messages(self):
        messages = json.loads(self.messages("system", "user", "assistant"))["messages"]
        self.assertEqual(self.load(" " + json.dumps(messages))[:3], messages)
        torn = json.dumps(messages)[:-1] + ",]"
        self.load(torn, f"invalid JSON at byte {len(torn) - 1}")
        before = (self.folder / "kept.json").read_bytes()
        self.chat("hello\n/save kept.json\n", code=3)  # others read it: it stays one
        self.assertEqual((self.folder / "kept.json").read_bytes(), before)

    def test_load_says_that_the_document_is_gone(self):
        self.write("report", "The fox and the hen met at the well. " * 4)
        self.check("prefill", *self.model, "--page-size", "16", "report", "-o", "talk.kv")
        self.write("kept.json", self.messages("user", "assistant"))
        flags = ("--kv", "talk.kv", "--page-size", "16")
        result = self.chat("/save own.json\n/load own.json\n/load kept.json\n", *flags)
        self.assertIn("loaded 0 messages from own.json\n", result.err)
        self.assertIn("loaded 2 messages from kept.json; the document of --kv is no part of them "
                      "and was dropped\n", result.err)  # fmt: skip
        self.assertIn("from kept.json\n", self.chat("/load kept.json\n").err)

    def messages(self, *roles):
        return json.dumps({"messages": [{"role": role, "content": "x"} for role in roles]})

    def test_load_refuses_roles_that_do_not_alternate(self):
        for roles, expected in (
            (["user", "user"], ["message 2", "role user", "expected assistant after user"]),
            (["assistant"], ["message 1", "role assistant", "expected user or system"]),
            (["system", "assistant"], ["message 2", "expected user after system"]),
            (["system", "system"], ["message 2", "role system"]),
            (["user", "assistant", "system"], ["message 3", "expected user after assistant"]),
        ):
            with self.subTest(roles=roles):
                # The conversation stays as it was.
                self.assertEqual(len(self.load(self.messages(*roles), *expected)), 2)

    def test_load_takes_roles_that_alternate(self):
        for roles in ([], ["system"], ["user", "assistant"], ["system", "user", "assistant"]):
            with self.subTest(roles=roles):
                self.assertEqual(len(self.load(self.messages(*roles))), len(roles) + 2)

    def test_a_loaded_question_is_answered_first(self):
        self.write("kept.json", self.messages("user"))
        result = self.chat("/load kept.json\nhello\n/regen\nhello\n/save after.json\n", code=3)
        self.assertIn("no answer yet", result.error_lines[0])
        self.assertIn("/regen", result.err)
        after = json.loads((self.folder / "after.json").read_text())["messages"]
        self.assertEqual(len(after), 4)

    def test_load_of_a_malformed_file(self):
        for content in ("", "{", "[]", "null", "7", '{"messages": 1}', '{"messages": [1]}',
                        '{"messages": [{}]}', '{"messages": [], "x": 1e999}', '{"messages": [[]]}',
                        '{"messages": [{"role": 1, "content": "x"}]}',
                        '{"messages": [{"role": "user", "content": 5}]}',
                        '{"messages": [{"role": "robot", "content": "x"}]}',
                        '{"messages": [{"role": "user", "content": "\\ud800"}]}',
                        "[" * 100000, b"\xff", b"\0"):  # fmt: skip
            with self.subTest(content=content[:60]):
                self.load(content, "kept.json")

    def test_bytes_that_are_no_text(self):
        self.write("kept.json", b'{"messages": [{"role": "user", "content": "caf\xe9"}]}')
        result = self.chat("/load kept.json\n", code=3)
        self.assert_one_error(result, "kept.json: not UTF-8 text")
        self.assertIn("--replace-invalid", result.err)
        self.assertIn("loaded 1 message", self.chat("/load kept.json\n", "--replace-invalid").err)

    def test_commands_that_cannot_be_done(self):
        self.write("not.json", "{")
        self.write("odd.json", '{"messages": [{"role": "robot", "content": "x"}]}')
        for line in ("/undo", "/regen", "/read missing", "/load missing", "/load not.json",
                     "/load odd.json", "/save", "/save /no/such/folder/x", "/set top_k",
                     "/set top_k x", "/set top_p 2", "/set frob 1", "/clear all",
                     "/set stats 1", "/read -", "/save -", "/load -"):  # fmt: skip
            with self.subTest(line=line):
                self.assert_one_error(self.chat(line + "\n", code=3))
        self.assertFalse((self.folder / "-").exists())

    def test_names_of_files_have_no_nul(self):
        for command in ("/read", "/save", "/load"):
            result = self.chat(f"{command} x\0y\n", code=3)
            self.assert_one_error(result, f"{command} needs a file, whose name has no NUL byte")
        self.assertFalse((self.folder / "x").exists())
