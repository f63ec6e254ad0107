"""tessera prefill, --kv, and what chats keep of what they computed."""

import json
import os
import resource
import signal
import struct
import subprocess

from chat_terminal import ChatCase
from rows.contract import Row
from support import TIMEOUT_SECONDS, Case, edit_json

DOCUMENT = "The fox and the hen met at the well. " * 4
PAGES = ["--page-size", "16"]


def xxhash64(data):
    """XXH64 with seed 0, of at least 32 bytes in whole words."""
    primes = [0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
              0x85EBCA77C2B2AE63]  # fmt: skip
    mask = 2**64 - 1
    p1, p2, p3, p4 = primes

    def rotated(value, bits):
        return (value << bits | value >> (64 - bits)) & mask

    def mixed(lane, word):
        return rotated((lane + word * p2) & mask, 31) * p1 & mask

    words = struct.unpack(f"<{len(data) // 8}Q", data)
    lanes = [(p1 + p2) & mask, p2, 0, -p1 & mask]
    striped = len(words) // 4 * 4
    for index in range(striped):
        lanes[index % 4] = mixed(lanes[index % 4], words[index])
    total = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & mask
    for lane in lanes:
        total = ((total ^ mixed(0, lane)) * p1 + p4) & mask
    total = (total + len(data)) & mask
    for word in words[striped:]:
        total = (rotated(total ^ mixed(0, word), 27) * p1 + p4) & mask
    total = (total ^ total >> 33) * p2 & mask
    total = (total ^ total >> 29) * p3 & mask
    return total ^ total >> 32


def last_stats(folder):
    """Of the newest answer: a chat writes a line for each."""
    return json.loads((folder / "stats.json").read_text().splitlines()[-1])


class KvCase(Case):
    def flags(self):
        return [*self.model, *PAGES]

    def prefill(self, *arguments, document=DOCUMENT, code=0):
        path = self.write("document.txt", document)
        return self.check("prefill", *self.flags(), path, "-o", "document.kv", *arguments,
                          code=code)  # fmt: skip

    def stats(self):
        return last_stats(self.folder)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())


class Prefill(KvCase):
    def test_an_answer_is_the_same_and_its_document_is_not_computed(self):
        self.prefill()
        question = ["-n", "8", "--stats-json", "stats.json"]
        ours = self.check("generate", *self.flags(), "--kv", "document.kv", "-p", "Who?", *question)
        stats = self.stats()
        self.assertGreater(stats["cached_prompt_tokens"], 90)
        self.assertLess(stats["computed_prompt_tokens"], 40)
        whole = self.check("generate", *self.flags(), "-p", DOCUMENT + "\n\nWho?", *question)
        self.assertEqual(ours.out, whole.out)
        self.assertEqual(stats["prompt_tokens"], self.stats()["prompt_tokens"])

    def test_a_system_message(self):
        self.prefill("--system", "Be brief.")
        ours = self.check("generate", *self.flags(), "--kv", "document.kv", "-p", "Who?", "-n", "8")
        whole = self.check("generate", *self.flags(), "--system", "Be brief.",
                           "-p", DOCUMENT + "\n\nWho?", "-n", "8")  # fmt: skip
        self.assertEqual(ours.out, whole.out)

    def test_from_standard_input(self):
        self.prefill()
        first = (self.folder / "document.kv").read_bytes()
        self.check("prefill", *self.flags(), "-", "-o", "document.kv", stdin=DOCUMENT)
        self.assertEqual((self.folder / "document.kv").read_bytes(), first)

    def test_summarize(self):
        self.prefill()
        ours = self.check("summarize", *self.flags(), "--kv", "document.kv", "-n", "8",
                          "--instruction", "Shout.", "--stats-json", "stats.json")  # fmt: skip
        self.assertGreater(self.stats()["cached_prompt_tokens"], 90)
        whole = self.check("generate", *self.flags(), "-p", DOCUMENT + "\n\nShout.", "-n", "8")
        self.assertEqual(ours.out, whole.out)
        result = self.check("summarize", *self.flags(), "--kv", "document.kv", "x.txt", code=2)
        self.assert_one_error(result, "file excludes --kv")

    def test_batch(self):
        self.prefill()
        lines = [{"id": str(i), "prompt": f"Who {i}?", "max_tokens": 8} for i in range(3)]
        lines.append({"custom_id": "own", "method": "POST", "url": "/v1/chat/completions",
                      "body": {"messages": [{"role": "system", "content": "S"},
                                            {"role": "user", "content": "x"}]}})  # fmt: skip
        self.write("in.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        command = ["batch", *self.flags(), "-i", "in.jsonl", "-o", "out.jsonl", "--seed", "1"]
        self.check(*command, "--kv", "document.kv", code=3)
        records = map(json.loads, (self.folder / "out.jsonl").read_text().splitlines())
        by_id = {record["custom_id"]: record for record in records}
        self.assertIn("document.kv", by_id.pop("own")["error"]["message"])
        for name, record in by_id.items():
            whole = self.check("generate", *self.flags(), "-p", f"{DOCUMENT}\n\nWho {name}?",
                               "-n", "8")  # fmt: skip
            text = record["response"]["body"]["choices"][0]["message"]["content"]
            self.assertEqual(text, whole.out.removesuffix("\n"))
        # The file is one of the settings.
        result = self.check(*command, "--resume", code=2)
        self.assert_one_error(result, "kv_sha256 was")

    def test_chat(self):
        self.prefill()
        chat = ["chat", *self.flags(), "-n", "6", "-q"]
        ours = self.check(*chat, "--kv", "document.kv", stdin="Who?\n/undo\nWhen?\nWhy?\n")
        answers = self.check(*chat, stdin=f'"""{DOCUMENT}\n\nWho?"""\n/undo\n'
                             f'"""{DOCUMENT}\n\nWhen?"""\nWhy?\n')  # fmt: skip
        self.assertEqual(ours.out, answers.out)

    def test_flags_that_contradict(self):
        for flag in (["--system", "S"], ["--raw"], ["--no-prefix-cache"]):
            result = self.check("generate", *self.flags(), "-p", "x", "--kv", "x.kv", *flag, code=2)
            self.assert_one_error(result, flag[0])
        for flag in (["--chunk"], ["--chunk-tokens", "100"], ["--overlap", "4"], ["--each"],
                     ["--on-overflow", "middle"], ["--json"], ["-o", "x"]):  # fmt: skip
            result = self.check("summarize", *self.flags(), "--kv", "x.kv", *flag, code=2)
            self.assert_one_error(result, "excludes --kv")
        # Its pages are those of the prefix cache.
        self.assert_one_error(self.prefill("--no-prefix-cache", code=2),
                              "no flag --no-prefix-cache")  # fmt: skip
        self.assertNotIn("--no-prefix-cache", self.check("prefill", "--help").out)


class Writing(KvCase):
    def test_too_short_to_be_worth_it(self):
        path = self.write("document.txt", "x")
        result = self.check("prefill", *self.model, path, "-o", "document.kv", code=1)
        self.assert_one_error(result, "only whole pages of 64 are kept")
        self.assertEqual(self.names(), ["document.txt"])

    def test_too_long(self):
        result = self.prefill(document="word " * 300, code=1)
        self.assert_one_error(result, "256")
        self.assertEqual(self.names(), ["document.txt"])

    def test_an_empty_document(self):
        self.assert_one_error(self.prefill(document=" \n", code=1), "document.txt: is empty")

    def test_onto_itself_or_nowhere(self):
        path = self.write("document.txt", DOCUMENT)
        result = self.check("prefill", *self.flags(), path, "-o", path, code=2)
        self.assert_one_error(result, "same file")
        result = self.check("prefill", *self.flags(), path, "-o", "absent/x.kv", code=1)
        self.assert_one_error(result, "absent/x.kv: No such file")
        result = self.check("prefill", *self.flags(), path, "-o", "/dev/null", code=1)
        self.assert_one_error(result, "not a regular file")
        result = self.check("prefill", *self.flags(), path, "-o", "-", code=2)
        self.assert_one_error(result, "cannot go to standard output")
        self.assertFalse((self.folder / "-").exists())

    def test_a_full_disk_leaves_the_old_file(self):
        self.prefill()
        old = (self.folder / "document.kv").read_bytes()
        limit = len(old) // 2
        process = self.start("prefill", *self.flags(), "document.txt", "-o", "document.kv",
                             preexec_fn=lambda: resource.setrlimit(
                                 resource.RLIMIT_FSIZE, (limit, limit)))  # fmt: skip
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("error: document.kv: write failed: File too large", err.decode())
        self.assertEqual((self.folder / "document.kv").read_bytes(), old)
        self.assertEqual(self.names(), ["document.kv", "document.txt"])

    def test_an_interrupt_leaves_nothing(self):
        path = self.write("document.txt", "word " * 40000)
        process = self.start("prefill", *self.long_model(), path, "-o", "document.kv", "-v",
                             stderr=subprocess.PIPE)  # fmt: skip
        for line in process.stderr:
            if b"load: " in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130)
        self.assertNotIn("document.kv", self.names())
        self.assertEqual(self.names(), ["document.txt", "long"])


class Refusals(KvCase, Row):
    def kv_refused(self, *words, flags=None, hint=""):
        self.refused("generate", *(flags or self.flags()), "--kv", "document.kv", "-p", "x",
                     words=words, path="document.kv: ", hint=hint)  # fmt: skip

    def test_damage(self):
        self.prefill()
        path = self.folder / "document.kv"
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        self.kv_refused(f"has {len(whole) - 1} bytes, its header describes {len(whole)}")
        path.write_bytes(whole[:100])
        self.kv_refused("has 100 bytes")
        path.write_bytes(b"")
        self.kv_refused("has 0 bytes")
        for at, word in [(9, "version"), (60, "header"), (300, "text"), (9000, "page"),
                         (len(whole) - 1, "page")]:  # fmt: skip
            damaged = bytearray(whole)
            damaged[at] ^= 0x40
            path.write_bytes(damaged)
            self.kv_refused(word)
        path.write_bytes(b"x" * 5000)
        self.kv_refused("is no file of keys and values")
        path.unlink()
        self.kv_refused("No such file")

    def test_sizes_that_cannot_be(self):
        """In a header whose checksum is right: numbers are judged, not trusted."""
        self.prefill()
        path = self.folder / "document.kv"
        whole = path.read_bytes()
        fields = ["layers", "KV heads", "page size", "head_dim", "pages", "text", "scales"]
        for index, field in enumerate(fields):
            for value in (2**62, 2**64 - 1, 2**32):
                damaged = bytearray(whole)
                damaged[96 + 8 * index : 104 + 8 * index] = struct.pack("<Q", value)
                damaged[248:256] = struct.pack("<Q", xxhash64(bytes(damaged[:248])))
                path.write_bytes(damaged)
                self.kv_refused(field)

    def test_of_another_model(self):
        self.prefill()
        folder = self.copy_model("other")
        edit_json(folder / "config.json", rms_norm_eps=0.5)
        flags = ["-m", folder, *self.flags()[2:]]
        self.kv_refused("another model (sha256 ", flags=flags, hint="tessera prefill")

    def test_of_another_page_size(self):
        self.prefill()
        self.kv_refused("pages of 16 tokens; this run has", "pages of 32",
                     flags=[*self.model, "--page-size", "32"])  # fmt: skip

    def test_too_long_for_the_context(self):
        self.prefill()
        result = self.check("generate", *self.flags(), "-c", "64", "--kv", "document.kv", "-p", "x",
                            code=1)  # fmt: skip
        self.assert_one_error(result, "64")


class Kept(KvCase):
    def chat(self, text, *flags, code=0):
        return self.check("chat", *self.flags(), "-n", "6", "--stats-json", "stats.json", *flags,
                          stdin=text, code=code)  # fmt: skip

    def test_save_and_load(self):
        talk = f"{DOCUMENT}\nWho?\n"
        saved = self.chat(talk + "/save kept.json\n")
        self.assertRegex(saved.err, r"\d+ tokens as computed, .*, to kept.json.kv")
        whole = self.chat(talk + "When?\n")
        loaded = self.chat("/load kept.json\nWhen?\n")
        self.assertRegex(loaded.err, r"read \d+ tokens from kept.json.kv")
        self.assertTrue(whole.out.endswith(loaded.out))
        self.assertGreater(self.stats()["cached_prompt_tokens"], 90)
        # It is a file for --kv as well.
        again = self.chat("When?\n", "--kv", "kept.json.kv")
        self.assertEqual(again.out, loaded.out)
        self.assertGreater(self.stats()["cached_prompt_tokens"], 90)

    def test_what_was_never_computed_is_not_missed(self):
        """A conversation shorter than a page."""
        page = ["--page-size", "256"]
        self.chat("hello\n/save kept.json\n", *page)
        self.assertNotIn("kept.json.kv", self.names())
        loaded = self.chat("/load kept.json\n", *page)
        self.assertEqual(loaded.err, "loaded 2 messages from kept.json\n")

    def test_nothing_stale_stays_beside_a_short_conversation(self):
        self.chat(f"{DOCUMENT}\n/save kept.json\n")
        self.assertIn("kept.json.kv", self.names())
        # What is kept of this very conversation stays, though nothing is computed.
        self.chat("/load kept.json\n/save kept.json\n", "--no-prefix-cache")
        self.assertIn("kept.json.kv", self.names())
        self.chat("hello\n/save kept.json\n", "--page-size", "256")
        self.assertNotIn("kept.json.kv", self.names())

    def test_a_file_that_holds_something_else_stays(self):
        path = self.write("kept.json.kv", "a diary")
        result = self.chat(f"{DOCUMENT}\n/save kept.json\n", code=3)
        self.assertEqual(len(result.error_lines), 1)
        self.assertIn("kept.json.kv: is no file of keys and values", result.error_lines[0])
        self.assertEqual(path.read_text(), "a diary")
        self.assertTrue((self.folder / "kept.json").exists())

    def test_clear_says_what_stays(self):
        self.prefill()
        result = self.chat("Who?\n/clear\n/system S\n/clear\n", "--kv", "document.kv")
        self.assertIn("cleared; the document of --kv stays\n", result.err)
        self.assertIn("cleared; the system message and the document of --kv stay\n", result.err)

    def test_what_is_damaged_or_stale_is_computed_anew(self):
        self.chat(f"{DOCUMENT}\n/save kept.json\n")
        whole = self.chat("/load kept.json\nWhen?\n")
        kept = (self.folder / "kept.json.kv").read_bytes()

        def expect(reason):
            result = self.chat("/load kept.json\nWhen?\n")
            self.assertEqual(result.out, whole.out)
            self.assertIn(reason, result.err)
            self.assertIn("the conversation is computed anew", result.err)
            self.assertEqual(result.error_lines, [])
            self.assertEqual(self.stats()["cached_prompt_tokens"], 0)

        (self.folder / "kept.json.kv").write_bytes(kept[:-1] + b"x")
        expect("is damaged")
        self.chat("hello\n/save kept.json\n")
        (self.folder / "kept.json.kv").write_bytes(kept)
        result = self.chat("/load kept.json\nWhen?\n")
        self.assertIn("kept.json.kv: holds another conversation", result.err)

    def test_a_document_stays_the_conversation_s(self):
        self.prefill()
        self.chat("Who?\n/save kept.json\n", "--kv", "document.kv")
        kept = json.loads((self.folder / "kept.json").read_text())
        self.assertEqual(kept["messages"][0]["content"], "Who?")
        self.assertEqual(kept["document"], DOCUMENT)
        ours = self.chat("/load kept.json\n/undo\nWhen?\n")
        self.assertEqual(ours.out, self.chat("When?\n", "--kv", "document.kv").out)

    def test_a_full_disk_is_an_error_of_the_command(self):
        os.mkdir(self.folder / "kept.json.kv")
        result = self.chat(f"{DOCUMENT}\n/save kept.json\nWho?\n", code=3)
        self.assertEqual(len(result.error_lines), 1)
        self.assertIn("kept.json.kv: is not a regular file", result.error_lines[0])
        self.assertTrue((self.folder / "kept.json").exists())

    def test_nothing_to_keep_without_the_prefix_cache(self):
        self.chat(f"{DOCUMENT}\n/save kept.json\n", "--no-prefix-cache")
        self.assertNotIn("kept.json.kv", self.names())


class Branches(ChatCase):
    def chat(self, *arguments):
        return super().chat(*PAGES, "-n", "6", "--stats-json", "stats.json", *arguments)

    def say(self, terminal, line, answer):
        terminal.send(line + "\r")
        terminal.expect(answer)
        terminal.expect_prompt()

    def cached(self):
        return last_stats(self.folder)["cached_prompt_tokens"]

    def test_branches_share_and_go_apart(self):
        terminal = self.chat()
        self.ask(terminal, DOCUMENT.strip())
        self.say(terminal, "/branch other", "a new branch other, 2 messages")
        self.ask(terminal, "Who?")
        self.assertGreater(self.cached(), 90)  # of main's pages
        self.say(terminal, "/branch main", "on branch main, 2 messages")
        self.ask(terminal, "When?")
        self.assertGreater(self.cached(), 90)
        self.say(terminal, "/branch", r"\* main  4 messages\r\n +other  4 messages")
        self.assertEqual(self.messages(terminal)[2], "When?")
        self.say(terminal, "/branch other", "on branch other, 4 messages")
        self.assertEqual(self.messages(terminal)[2], "Who?")
        self.leave(terminal)

    def test_undo_and_retry_compute_little(self):
        terminal = self.chat()
        self.ask(terminal, DOCUMENT.strip())
        self.ask(terminal, "Who?")
        self.say(terminal, "/undo", "took back the last exchange")
        self.ask(terminal, "When?")
        self.assertGreater(self.cached(), 90)
        self.ask(terminal, "/retry")
        self.assertGreater(self.cached(), 90)
        self.assertEqual(self.messages(terminal)[2], "When?")
        self.leave(terminal)

    def test_a_name_is_one_word(self):
        terminal = self.chat()
        self.say(terminal, "/branch two words", "the name of a branch is one word")
        self.leave(terminal)
