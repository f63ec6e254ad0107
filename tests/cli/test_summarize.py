"""tessera summarize."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time

import support
from support import Case

LINES = "".join(f"This is line {number} of a report.\n" for number in range(120))


class Summarize(Case):
    def test_file_and_stdin(self):
        path = self.write("document.txt", "A short report.\n")
        from_file = self.check("summarize", *self.model, path, "-n", "8")
        from_stdin = self.check("summarize", *self.model, "-", "-n", "8", stdin=path.read_bytes())
        self.assertEqual(from_file.out, from_stdin.out)
        self.assertIn("gen 8 tok", from_file.err)

    def test_the_prompt_is_instruction_and_document(self):
        path = self.write("document.txt", "A short report.")
        summary = self.check("summarize", *self.model, path, "-n", "8").out
        prompt = "Summarize the following document.\n\nA short report."
        self.assertEqual(self.check("generate", *self.model, "-p", prompt, "-n", "8").out, summary)

    def test_instructions(self):
        path = self.write("document.txt", "A short report.")
        for flags, instruction in [
            (["--instruction", "Shout."], "Shout."),
            (["--style", "bullets"], "Summarize the following document in bullet points."),
            (["--style", "facts"], "List the key facts of the following document."),
            (["--style", "paragraph", "--words", "5"],
             "Summarize the following document in one paragraph. Use at most 5 words."),
            (["--instruction", "Shout.", "--focus", "Who?"],
             "Shout. Say above all what answers this question: Who?"),
        ]:  # fmt: skip
            result = self.check("summarize", *self.model, path, "-n", "8", *flags)
            prompt = instruction + "\n\nA short report."
            answer = self.check("generate", *self.model, "-p", prompt, "-n", "8").out
            self.assertEqual(answer, result.out, flags)

    def test_the_plan_comes_first(self):
        path = self.write("document.txt", "A short report.")
        result = self.check("summarize", *self.model, path, "-n", "8")
        self.assertRegex(
            result.err.splitlines()[0],
            r"document\.txt: \d+ tokens, context 256, 8 reserved for the summary; one pass; "
            r"KV [\d.]+ KiB; about \d+ s to read, at most \d+ s to answer$",
        )

    def test_a_cut_is_said(self):
        path = self.write("document.txt", "A short report.")
        result = self.check("summarize", *self.model, path, "-n", "8", "--ignore-eos")
        self.assertIn("the summary was cut at 8 tokens", result.err)

    def test_a_full_context_is_said(self):
        path = self.write("document.txt", "A short report.")
        for flags in ([], ["--json"]):
            result = self.check("summarize", *self.model, path, "-n", "0", "--ignore-eos", *flags)
            self.assertRegex(result.err, r"the summary was cut at \d+ tokens, where the context")
            self.assertNotIn("-n allows more", result.err)

    def test_bad_flags(self):
        path = self.write("document.txt", "A short report.")
        for flags, text in [
            (["--style", "verse"], "--style must be bullets, paragraph or facts"),
            (["--on-overflow", "cut"], "--on-overflow must be error, chunk or middle"),
            (["-o", path], "the same file"),
            (["--style", "facts", "--instruction", "x"], "--instruction"),
            (["--json", "--stats-json", "-"], "cannot both go to standard output"),
            (["-", "-"], "standard input can be read only once"),
            (["--chunk", "--on-overflow", "middle"], "--on-overflow excludes --chunk"),
        ]:
            result = self.check("summarize", *self.model, path, *flags, code=2)
            self.assert_one_error(result, text)
        self.assertEqual(path.read_text(), "A short report.")

    def test_bytes_that_are_no_text(self):
        path = self.write("document.txt", "A short report.")
        for flag in ("--focus", "--instruction"):
            result = self.check("summarize", *self.model, path, flag, b"\xe9", code=1)
            self.assert_one_error(result, f"error: {flag}: not UTF-8 text: invalid byte at offset 0")
            self.check("summarize", *self.model, path, flag, b"\xe9", "-n", "2",
                       "--replace-invalid")  # fmt: skip

    def test_empty(self):
        path = self.write("empty.txt", "\n")
        result = self.check("summarize", *self.model, path, code=1)
        self.assert_one_error(result, f"{path}: is empty")
        self.assert_one_error(self.check("summarize", *self.model, "-", code=1),
                              "standard input: is empty")  # fmt: skip


    def test_a_binary_file_is_not_too_long(self):
        self.write("big", b"\x7fELF\0\xff\xfe\0" * 100_000)
        for arguments in (["generate", *self.model, "-f", "big"],
                          ["prefill", *self.model, "big", "-o", "out"]):
            result = self.check(*arguments, code=1)
            self.assert_one_error(result, "big: looks like a binary file, expected UTF-8 text")

    def test_a_huge_file_is_refused_before_it_is_read(self):
        path = self.folder / "huge.txt"
        with path.open("wb") as file:
            file.truncate((1 << 30) + 1)
        result = self.check("summarize", *self.model, path, code=1)
        self.assert_one_error(result, f"{path}: larger than {1 << 30} bytes")
        self.assertLess(result.cpu_seconds, 0.5)


class TooLong(Case):
    """Documents that do not fit the context."""

    def test_refused_where_asked_for(self):
        path = self.write("long.txt", "word " * 200)
        flags = ["--on-overflow", "error"]
        result = self.check("summarize", *self.model, path, *flags, code=1)
        self.assert_one_error(result, "512 reserved")
        self.assertIn("longer context", result.err)

    def test_refused_with_the_context_that_would_hold_it(self):
        path = self.write("long.txt", "word " * 1000)
        flags = [*self.long_model(), "--on-overflow", "error"]
        result = self.check("summarize", *flags, path, "-c", "1k", code=1)
        self.assert_one_error(result, "1024")
        needed = re.search(r"hint: -c (\d+)", result.err)[1]
        self.check("summarize", *flags, path, "-c", needed)

    def test_no_room_even_for_a_part(self):
        path = self.write("long.txt", LINES)
        result = self.check("summarize", *self.model, path, "-n", "200", code=1)
        self.assert_one_error(result, "no room")
        self.assertIn("hint: ", result.err)

    def test_the_middle_is_left_out_and_that_is_said(self):
        path = self.write("long.txt", LINES)
        flags = ["-n", "8", "--on-overflow", "middle", "--json"]
        result = self.check("summarize", *self.model, path, *flags)
        report = json.loads(result.out)
        self.assertEqual(report["plan"]["kind"], "middle")
        (gap,) = report["left_out"]
        first, last = report["coverage"]
        self.assertEqual(first["tokens"][0], 0)
        self.assertEqual([first["tokens"][1], last["tokens"][0]], gap["tokens"])
        self.assertEqual(last["bytes"][1], len(LINES) - 1)
        begin, end = gap["tokens"]
        self.assertIn(f"left out: tokens {begin} to {end - 1} of", result.err)
        self.assertIn(f"({end - begin} tokens, bytes", result.err)

    def test_what_several_documents_lose_is_listed(self):
        paths = [self.write(name, LINES[:2000]) for name in ("a.txt", "b.txt", "c.txt")]
        flags = ["-n", "8", "--on-overflow", "middle", "--json", "--stats-json", "stats.json"]
        report = json.loads(self.check("summarize", *self.model, *paths, *flags).out)
        gaps = [{"document": gap["document"], "begin": gap["tokens"][0],
                 "tokens": gap["tokens"][1] - gap["tokens"][0]} for gap in report["left_out"]]
        self.assertEqual([gap["document"] for gap in gaps], [str(path) for path in paths])
        stats = json.loads((self.folder / "stats.json").read_text())
        self.assertEqual(stats["left_out"], gaps)

    def test_many_documents_lose_their_middle(self):
        names = [f"part-{number}.txt" for number in range(9)]
        for number, name in enumerate(names):
            self.write(name, LINES[:30 * number + 60])
        flags = ["-n", "8", "--on-overflow", "middle", "--json"]
        report = json.loads(self.check("summarize", *self.model, *names, *flags).out)
        (call,) = report["calls"]
        self.assertLessEqual(call["prompt_tokens"] + 8, 256)
        self.assertGreater(call["prompt_tokens"], 150)
        self.assertEqual(report["coverage"][0]["document"], names[0])
        self.assertEqual(report["coverage"][-1]["document"], names[-1])


class Chunks(Case):
    """Documents that are read in parts."""

    def report(self, *arguments, model=None, **options):
        flags = ["-n", "16", "--ignore-eos", "--json"]
        result = self.check("summarize", *(model or self.model), *flags, *arguments, **options)
        return json.loads(result.out), result

    def assert_covered(self, report, name, text):
        """Every token and byte in order, none twice but in the overlap; calls that read them."""
        (document,) = [d for d in report["documents"] if d["name"] == str(name)]
        parts = [part for part in report["coverage"] if part["document"] == str(name)]
        self.assertEqual(document["bytes"], len(text))
        tokens, size = 0, 0
        for part in parts:
            self.assertLessEqual(part["tokens"][0], tokens)
            self.assertLessEqual(tokens - part["tokens"][0], report["plan"]["overlap_tokens"])
            self.assertLessEqual(part["bytes"][0], size)
            self.assertGreater(part["bytes"][1], size)
            tokens, size = part["tokens"][1], part["bytes"][1]
            self.assertEqual(report["calls"][part["call"]]["round"], 0)
        self.assertEqual((tokens, size), (document["tokens"], document["bytes"]))
        self.assertEqual(report["left_out"], [])

    def test_a_byte_order_mark_counts_where_bytes_are_told(self):
        plain, _ = self.report(self.write("plain.txt", LINES))
        marked, _ = self.report(self.write("marked.txt", b"\xef\xbb\xbf" + LINES.encode()))
        for key in ("tokens", "call"):
            self.assertEqual([part[key] for part in marked["coverage"]],
                             [part[key] for part in plain["coverage"]])  # fmt: skip
        self.assertEqual([part["bytes"] for part in marked["coverage"]],
                         [[at + 3 for at in part["bytes"]] for part in plain["coverage"]])  # fmt: skip
        self.assertEqual(marked["documents"][0]["bytes"], plain["documents"][0]["bytes"] + 3)

    def test_all_of_it_is_read(self):
        path = self.write("long.txt", LINES)
        report, result = self.report(path)
        self.assert_covered(report, path, LINES[:-1].encode())
        plan = report["plan"]
        self.assertEqual(plan["kind"], "chunks")
        self.assertRegex(
            result.err.splitlines()[0],
            r"; does not fit: {chunks} chunks of at most {chunk_tokens} tokens, overlap at most "
            r"{overlap_tokens}, at most {merge_rounds} merge rounds of {merge_calls} "
            r"calls".format(**plan),
        )
        for call in report["calls"]:
            self.assertLessEqual(call["prompt_tokens"] + 16, 256)
        self.assertIn("summaries were cut at 16 tokens", result.err)

    def test_odd_shapes(self):
        for number, text in enumerate(["word " * 900, "x" * 3000, "🦊🏳️‍🌈" * 120, "a\r\n" * 700]):
            path = self.write(f"odd{number}.txt", text + ".")
            report, _ = self.report(path)
            self.assert_covered(report, path, (text + ".").encode())
            self.assertGreater(len(report["coverage"]), 3)

    def test_merges_end_with_one_summary(self):
        path = self.write("long.txt", LINES * 3)
        report, _ = self.report(path)
        merged = [part for call in report["calls"] for part in call.get("merged", [])]
        # Each but the last is merged once.
        self.assertEqual(sorted(merged), list(range(len(report["calls"]) - 1)))
        self.assertEqual(report["summary"], report["calls"][-1]["text"])
        self.assertGreater(report["calls"][-1]["round"], 1)

    def test_in_parts_also_what_would_fit(self):
        path = self.write("document.txt", LINES[:1000])
        model = self.long_model()
        report, _ = self.report(path, model=model)
        self.assertEqual(report["plan"]["kind"], "one_pass")
        self.assert_covered(report, path, LINES[:1000].encode())
        report, result = self.report(path, "--chunk", "--chunk-tokens", "100", model=model)
        self.assertEqual(report["plan"]["kind"], "chunks")
        self.assert_covered(report, path, LINES[:1000].encode())
        self.assertNotIn("does not fit", result.err)

    def test_more_tokens_than_there_is_room_for_are_not_asked_for(self):
        path = self.write("long.txt", LINES)
        flags = ["--min-tokens", "500", "--json"]
        report = json.loads(self.check("summarize", *self.model, *flags, path, code=3).out)
        for call in report["calls"]:
            self.assertEqual(call["completion_tokens"], report["plan"]["answer_tokens"])

    def test_the_instruction_is_computed_once(self):
        path = self.write("document.txt", LINES)
        flags = ["--instruction", "Say what this is about. " * 12, "--chunk-tokens", "200"]
        report, _ = self.report(path, "--chunk", *flags, model=self.long_model())
        cached = [call["cached_prompt_tokens"] for call in report["calls"]]
        self.assertGreaterEqual(sum(tokens >= 64 for tokens in cached), len(cached) - 1)

    def test_several_files(self):
        texts = {self.write(f"{name}.txt", text): text
                 for name, text in [("a", LINES[:700]), ("b", "Short."), ("c", LINES[700:1200])]}
        report, _ = self.report(*texts)
        for path, text in texts.items():
            self.assert_covered(report, path, text.strip("\n").encode())
        lines = self.check("summarize", *self.model, *texts, "-n", "8", "--each", "--json").out
        reports = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual([r["plan"]["kind"] for r in reports], ["chunks", "one_pass", "chunks"])
        names = [document["name"] for r in reports for document in r["documents"]]
        self.assertEqual(names, [str(path) for path in texts])
        text = self.check("summarize", *self.model, *texts, "-n", "8", "--each").out
        places = [text.index(f"{path}:\n\n") for path in texts]
        self.assertEqual(places, sorted(places))

    def test_a_file_that_cannot_be_read_costs_no_other(self):
        self.write("a", "one. " * 20)
        self.write("latin1", b"caf\xe9 " * 20)
        each = ("-n", "8", "--each")
        result = self.check("summarize", *self.model, "missing", "a", "latin1", *each, code=3)
        self.assertTrue(result.out.startswith("a:\n\n"), result.out)
        self.assertIn("error: missing: No such file", result.err)
        self.assertIn("error: latin1: not UTF-8 text", result.err)
        result = self.check("summarize", *self.model, "missing", "latin1", *each, code=1)
        self.assertEqual(result.out, "")
        result = self.check("summarize", *self.model, "missing", "a", "-n", "8", code=1)
        self.assert_one_error(result, "missing: No such file")

    def test_into_a_link_that_leads_nowhere_yet(self):
        (self.folder / "link").symlink_to("folder/out")
        (self.folder / "folder").mkdir()
        self.write("a", "one. " * 20)
        self.check("summarize", *self.model, "a", "-n", "8", "-o", "link")
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertTrue((self.folder / "folder" / "out").read_text())

    def test_into_a_file(self):
        path = self.write("long.txt", LINES)
        shown = self.check("summarize", *self.model, path, "-n", "8").out
        result = self.check("summarize", *self.model, path, "-n", "8", "-o", "summary.txt")
        self.assertEqual(result.out, "")
        self.assertEqual((self.folder / "summary.txt").read_text(), shown)

    def test_into_what_is_no_file(self):
        path = self.write("long.txt", LINES)
        shown = self.check("summarize", *self.model, path, "-n", "8").out
        to_stdout = self.check("summarize", *self.model, path, "-n", "8", "-o", "/dev/stdout")
        self.assertEqual(to_stdout.out, shown)
        self.check("summarize", *self.model, path, "-n", "8", "-o", "/dev/null")
        os.mkfifo(self.folder / "pipe")
        reader = subprocess.Popen(["cat", self.folder / "pipe"], stdout=subprocess.PIPE)
        self.check("summarize", *self.model, path, "-n", "8", "-o", "pipe")
        self.assertEqual(reader.communicate(timeout=30)[0].decode(), shown)
        result = self.check("summarize", *self.model, path, "-n", "8", "-o", "/dev/full", code=1)
        self.assertIn("/dev/full: write failed: No space left on device", result.err)

    def test_statistics(self):
        path = self.write("long.txt", LINES)
        report, _ = self.report(path, "--stats-json", "stats.json")
        stats = json.loads((self.folder / "stats.json").read_text())
        self.assertEqual(stats["calls"], len(report["calls"]))
        self.assertEqual(stats["prompt_tokens"],
                         sum(call["prompt_tokens"] for call in report["calls"]))

    def test_a_drawn_seed_is_said_and_works(self):
        path = self.write("long.txt", LINES)
        flags = ["--temp", "1.5", "--stats-json", "stats.json"]
        report, result = self.report(path, *flags)
        seed = re.search(r"calls \| .* \| seed (\d+)", result.err)[1]
        stats = json.loads((self.folder / "stats.json").read_text())
        self.assertEqual([report["seed"], stats["seed"]], [int(seed)] * 2)
        again, _ = self.report(path, *flags, "--seed", seed)
        self.assertEqual(again["summary"], report["summary"])
        self.assertNotIn("seed", self.report(path)[1].err)

    def interrupted_while_reading(self, *arguments):
        """The report and the messages after Ctrl-C, once some parts have been read."""
        # Not a pipe: a report that nobody reads yet would keep the process from ending.
        report = tempfile.TemporaryFile()
        self.addCleanup(report.close)
        process = self.start(*arguments, stdout=report)
        some_calls_have_ended = re.compile(rb"reading: .* [1-9]\d*/\d+ calls")
        seen = []
        for line in process.stderr:
            seen.append(line)
            if some_calls_have_ended.match(line):
                break
        else:
            self.fail(f"ended before it said that calls have ended: {seen}")
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=support.TIMEOUT_SECONDS)
        if not support.is_sanitized():
            self.assertLess(time.monotonic() - sent, 0.5)
        self.assertEqual(process.returncode, 130, err)
        report.seek(0)
        return json.load(report), err

    def test_an_interrupt_among_many_parts(self):
        path = self.write("long.txt", LINES * 300)
        # A thread and a sequence at a time, so that many parts are left when progress is told first,
        # after five seconds.
        flags = ["--chunk-tokens", "64", "-n", "48", "--json", "--kv-pages", "4", "--threads", "1"]
        report, _ = self.interrupted_while_reading("summarize", *self.model, path, *flags)
        self.assertEqual(len(report["calls"]), report["plan"]["chunks"])
        self.assertGreater(len(report["calls"]), 10000)
        reasons = [call["finish_reason"] for call in report["calls"]]
        self.assertEqual(len(report["coverage"]), len(reasons) - reasons.count("cancelled"))
        self.assertTrue(all(call["prompt_tokens"] > 0 for call in report["calls"]))

    def test_an_interrupt_keeps_what_has_been_read(self):
        # Half a minute of work: progress is told first after five seconds.
        path = self.write("long.txt", LINES * 300)
        flags = ["--chunk", "--chunk-tokens", "64", "--ignore-eos", "-n", "64", "--json"]
        # A sequence at a time, so that some parts have been read while others have not.
        report, err = self.interrupted_while_reading("summarize", *self.long_model(), "-c", "512",
                                                     "--kv-pages", "8", path, *flags)  # fmt: skip
        self.assertFalse(report["complete"])
        self.assertIn(b"interrupted: ", err)
        self.assertRegex(err, rb"calls \| prompt \d+ of \d+ tok ")
        finished = [call for call in report["calls"] if call["finish_reason"] != "cancelled"]
        self.assertGreater(len(finished), 0)
        self.assertLess(len(finished), len(report["calls"]))
        self.assertTrue(all(call["text"] in report["summary"] for call in finished))
        self.assertEqual(len(report["coverage"]), len(finished))


class Demo(Case):
    def test_the_demo_model_answers(self):
        result = self.check("generate", *self.demo, "-p", "Who are you?")
        self.assertGreater(len(result.out.strip()), 3)
