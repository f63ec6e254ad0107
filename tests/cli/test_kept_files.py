"""What a file holds stays until there is something to put in its place."""

import json
import os
import pathlib
import re
import signal
import time

import big_models
import support
from rows.model_files import Safetensors
from support import Case

OLD = "what an earlier run wrote\n"
LINES = "".join(f"This is line {number} of a report.\n" for number in range(120))
UNTIED = pathlib.Path(__file__).parent.parent / "golden" / "data" / "gqa_d64"
POISON = "~"  # a byte piece of the tiny models


class KeptFiles(Case):
    def setUp(self):
        super().setUp()
        self.write("old", OLD)

    def old(self):
        return (self.folder / "old").read_text()

    def assert_kept(self):
        self.assertEqual(self.old(), OLD)
        self.assertEqual([path.name for path in self.folder.iterdir() if ".tmp." in path.name], [])

    def begin(self, *arguments):
        process = self.start(*arguments)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def wait_for_line(self, process, pattern):
        for line in process.stderr:
            if re.search(pattern, line.decode()):
                return
        self.fail(f"no line with {pattern}")

    def interrupt(self, process):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=support.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130, err)
        return err.decode()


class Statistics(KeptFiles):
    def test_a_run_that_fails(self):
        generate = ["generate", *self.model, "--stats-json", "old"]
        self.check(*generate, "-p", "word " * 300, code=1)
        self.check("generate", "-m", "absent", "-p", "x", "--stats-json", "old", code=1)
        self.check("summarize", *self.model, self.write("a.txt", "word " * 300), "--on-overflow",
                   "error", "--stats-json", "old", code=1)  # fmt: skip
        self.check("bench", *self.model, "--prompt-lengths", "250", "--json", "old", code=2)
        self.check("bench", "attention", "--device", "cuda:99", "--json", "old", code=1)
        self.check("batch", *self.model, "-i", "absent", "-o", "out", "--stats-json", "old", code=1)
        self.check("chat", *self.model, "--stats-json", "old", stdin="/exit\n")
        self.assert_kept()

    def test_a_baseline_that_another_run_cannot_be_compared_with(self):
        flags = ["--prompt-lengths", "16", "--decode-lengths", "4", "--repetitions", "2"]
        self.check("bench", *self.model, *flags, "--json", "before.json")
        before = (self.folder / "before.json").read_bytes()
        other = [*flags[:3], "8", *flags[4:], "--compare", "before.json", "--json", "before.json"]
        self.check("bench", *self.model, *other, code=1)
        self.assertEqual((self.folder / "before.json").read_bytes(), before)

    def test_a_stop(self):
        process = self.begin("bench", *self.long_model(), "--prompt-lengths", "4k", "--json", "old")
        self.wait_for_line(process, "timing ")
        self.interrupt(process)
        self.assert_kept()

    def test_a_file_that_could_not_be_written_is_told_early(self):
        for path, reason in [("absent/x", "No such file"), (self.folder, "Is a directory")]:
            result = self.check("generate", "-m", self.model[1], "-p", "x", "--stats-json", path,
                                code=1)  # fmt: skip
            self.assert_one_error(result, f"{path}: {reason}")

    def test_lines_follow_one_another(self):
        self.check("chat", *self.model, "-n", "2", "--stats-json", "old", stdin="a\nb\n")
        self.assertEqual(len(support.read_json_lines(self.folder / "old")), 2)
        texts = [self.write(name, f"Text {name}.") for name in ("a.txt", "b.txt")]
        self.check("summarize", *self.model, "-n", "2", "--each", *texts, "--stats-json", "old")
        self.assertEqual(len(support.read_json_lines(self.folder / "old")), 2)

    def test_what_is_no_regular_file(self):
        command = ["generate", *self.model, "-p", "x", "-n", "2", "-q", "--stats-json"]
        answer = self.check(*command, "/dev/null").out
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        for name in ("-", "/dev/stdout"):
            text = self.check(*command, name).out
            self.assertTrue(text.startswith(answer))
            json.loads(text[len(answer) :])
        # A file that standard output goes to keeps the answer before the statistics.
        with open(self.folder / "both", "wb") as both:
            self.check(*command, "/dev/stdout", stdout=both)
        text = (self.folder / "both").read_text()
        self.assertTrue(text.startswith(answer), text)
        json.loads(text[len(answer) :])

    def test_a_named_pipe(self):
        os.mkfifo(self.folder / "pipe")
        reader = os.open(self.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.check("chat", *self.model, "-n", "2", "--stats-json", "pipe", stdin="a\nb\n")
        self.assertEqual(len(os.read(reader, 1 << 16).splitlines()), 2)


class Summaries(KeptFiles):
    def test_a_stop_before_anything_was_read(self):
        big_models.write_slow_model(support.tiny_model(), self.folder / "slow")
        flags = ["-m", "slow", "--chat-template", "llama2", "--device", "cpu", "-o", "old"]
        self.write("long.txt", "a long prompt " * 900)
        for more in ([], ["--chunk"], ["--json"]):
            with self.subTest(more=more):
                process = self.begin("summarize", *flags, "long.txt", *more)
                self.wait_for_line(process, r"long.txt: \d+ tokens")
                time.sleep(0.2)
                err = self.interrupt(process)
                self.assert_kept()
                self.assertIn("nothing was written to old", err)

    def test_a_stop_keeps_what_was_said(self):
        flags = [*self.long_model(), "--ignore-eos", "-n", "30000", "-o", "old"]
        process = self.begin("summarize", *flags, self.write("a.txt", "A short report."))
        self.wait_for_line(process, r"a.txt: \d+ tokens")
        time.sleep(0.5)
        self.assertIn("the summary breaks off", self.interrupt(process))
        self.assertGreater(len(self.old()), 10)
        self.assertNotIn(OLD, self.old())

    def test_a_stop_keeps_what_was_read(self):
        flags = ["-c", "512", "--kv-pages", "8", "--chunk", "--chunk-tokens", "64", "--ignore-eos",
                 "-n", "64", "-o", "old"]  # fmt: skip
        path = self.write("a.txt", LINES * 300)
        process = self.begin("summarize", *self.long_model(), path, *flags)
        self.wait_for_line(process, r"reading: .* [1-9]\d*/\d+ calls")
        self.assertRegex(self.interrupt(process), r"interrupted: [1-9]\d* of \d+ parts had been read")
        self.assertGreater(len(self.old()), 64)
        self.assertNotIn(OLD, self.old())

    def test_a_stop_keeps_the_documents_before(self):
        big_models.write_model_without_length_limit(support.tiny_model(), self.folder / "limitless")
        flags = ["-m", "limitless", "--chat-template", "llama2", "--device", "cpu", "-n", "4"]
        self.write("long.txt", "the other pattern in their text\n" * 1_300_000)
        self.write("short.txt", "A short report.")
        process = self.begin("summarize", *flags, "--each", "short.txt", "long.txt", "-o", "old")
        self.wait_for_line(process, r"gen \d tok")
        time.sleep(0.3)
        self.interrupt(process)
        self.assertTrue(self.old().startswith("short.txt:\n\n"), self.old())
        self.assertNotIn("long.txt", self.old())

    def test_a_document_that_fails_costs_no_other(self):
        self.write("a.txt", "The first report.")
        self.write("b.txt", "word " * 300)
        self.write("c.txt", "The third report.")
        flags = [*self.model, "-n", "8", "--each", "--on-overflow", "error"]
        result = self.check("summarize", *flags, "a.txt", "b.txt", "c.txt", "-o", "old", code=3)
        self.assert_one_error(result, "b.txt: the document does not fit")
        both = self.check("summarize", *flags, "a.txt", "c.txt").out
        self.assertEqual(self.old(), both)
        lines = self.check("summarize", *flags, "a.txt", "b.txt", "c.txt", "--json", code=3).out
        names = [json.loads(line)["documents"][0]["name"] for line in lines.splitlines()]
        self.assertEqual(names, ["a.txt", "c.txt"])

    def test_documents_that_all_fail(self):
        texts = [self.write(name, "word " * 300) for name in ("a.txt", "b.txt")]
        self.check("summarize", *self.model, "--each", "--on-overflow", "error", *texts, "-o", "old",
                   code=3)  # fmt: skip
        self.assert_kept()

    def test_statistics_that_cannot_be_written(self):
        texts = [self.write(name, "A report.") for name in ("a.txt", "b.txt")]
        flags = [*self.model, "-n", "4", "-o", "old", "--stats-json", "/dev/full"]
        for more, code in [(texts[:1], 1), ([*texts, "--each"], 3)]:
            self.write("old", OLD)
            result = self.check("summarize", *flags, *more, code=code)
            self.assertIn("/dev/full: write failed", result.err)
            self.assertNotIn(OLD, self.old())


class NotFinite(KeptFiles):
    """A model for which reading one character ends in NaN."""

    def setUp(self):
        super().setUp()
        folder = self.folder / "poisoned"
        big_models.copy_text_files(UNTIED, folder)
        weights = Safetensors(UNTIED / "model.safetensors")
        embeddings = weights.tensors["model.embed_tokens.weight"]
        row_bytes = len(embeddings[2]) // embeddings[1][0]
        begin = (3 + ord(POISON)) * row_bytes
        values = bytearray(embeddings[2])
        values[begin : begin + row_bytes] = b"\xff" * row_bytes
        embeddings[2] = bytes(values)
        (folder / "model.safetensors").write_bytes(weights.content())
        self.flags = ["-m", folder, "--chat-template", "llama2", "--device", "cpu", "-n", "8",
                      "--chunk", "--overlap", "0"]  # fmt: skip

    def test_a_part_that_fails_costs_no_other(self):
        self.write("a.txt", LINES.replace("line 60 ", f"line {POISON} "))
        result = self.check("summarize", *self.flags, "a.txt", "--json", code=3)
        report = json.loads(result.out)
        reasons = [call["finish_reason"] for call in report["calls"]]
        self.assertEqual(reasons.count("error"), 1)
        self.assertGreater(len(reasons), 4)
        failed = report["calls"][reasons.index("error")]
        self.assertIn("non-finite", failed["error"])
        self.assertFalse(report["complete"])
        (gap,) = report["left_out"]
        self.assertLess(gap["bytes"][0], LINES.index("line 60 "))
        self.assertGreater(gap["bytes"][1], LINES.index("line 60 "))
        self.assertNotEqual(report["summary"], "")
        self.assertRegex(result.err, r"1 of \d+ parts could not be read: .*non-finite")
        self.check("summarize", *self.flags, "a.txt", "-o", "old", "--stats-json", "s.json", code=3)
        self.assertEqual(self.old(), report["summary"] + "\n")
        stats = json.loads((self.folder / "s.json").read_text())
        self.assertEqual(stats["failed_calls"], 1)
        self.assertEqual(stats["left_out"], [{
            "document": "a.txt", "begin": gap["tokens"][0],
            "tokens": gap["tokens"][1] - gap["tokens"][0],
        }])  # fmt: skip

    def test_where_no_part_can_be_read_there_is_no_summary(self):
        self.write("a.txt", POISON * 900)
        result = self.check("summarize", *self.flags, "a.txt", "-o", "old", code=1)
        self.assert_one_error(result, "non-finite")
        self.assert_kept()

    def test_a_merge_that_fails_leaves_the_summaries(self):
        """What merges read, and only that, holds the character: the model says it often."""
        weights = Safetensors(self.folder / "poisoned" / "model.safetensors")
        head = weights.tensors["lm_head.weight"]
        row_bytes = len(head[2]) // head[1][0]
        values = bytearray(head[2])
        begin = (3 + ord(POISON)) * row_bytes
        for other in range(0, len(values), row_bytes):  # every other logit is 0
            if other != begin:
                values[other : other + row_bytes] = bytes(row_bytes)
        head[2] = bytes(values)
        weights.save()
        self.write("a.txt", LINES)
        result = self.check("summarize", *self.flags, "-n", "1", "a.txt", "--json", code=3)
        report = json.loads(result.out)
        rounds = [call["round"] for call in report["calls"] if call["finish_reason"] == "error"]
        self.assertIn(1, rounds)
        self.assertNotIn(0, rounds)
        self.assertIn("a merge failed: ", result.err)
        self.assertIn("could not be merged, and follow one after the other", result.err)
        self.assertIn(POISON, report["summary"])
