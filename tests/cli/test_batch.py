"""tessera batch: every line answered once, whatever happens on the way."""

import json
import os
import random
import signal
import time

from support import Case, read_json_lines


def openai_line(custom_id, content, **body):
    body = {"messages": [{"role": "user", "content": content}], **body}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def short_line(custom_id, prompt, **fields):
    return {"id": custom_id, "prompt": prompt, **fields}


class BatchCase(Case):
    def write_input(self, *lines, name="in.jsonl"):
        text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
        return self.write(name, text)

    def batch(self, *arguments, code=0, output="out.jsonl", flags=None):
        return self.check("batch", *(flags or self.model), "-i", "in.jsonl", "-o", output,
                          "-n", "8", *arguments, code=code)  # fmt: skip

    def records(self, name="out.jsonl"):
        return {r["custom_id"]: r for r in read_json_lines(self.folder / name)}


class Answers(BatchCase):
    def test_both_forms(self):
        self.write_input(
            openai_line("a", "hello", max_tokens=4, model="ignored", user="me"),
            short_line("b", "hello", max_tokens=4),
            {"custom_id": "c", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4},
        )
        result = self.batch()
        self.assertEqual(result.out, "")
        records = self.records()
        self.assertEqual(list(records), ["a", "b", "c"])
        for record in records.values():
            self.assertIsNone(record["error"])
            self.assertTrue(record["id"].startswith("batch_req_"))
            self.assertEqual(record["response"]["status_code"], 200)
            body = record["response"]["body"]
            self.assertEqual(body["object"], "chat.completion")
            self.assertEqual(body["choices"][0]["message"]["role"], "assistant")
            self.assertEqual(body["choices"][0]["finish_reason"], "length")
            usage = body["usage"]
            self.assertEqual(usage["completion_tokens"], 4)
            self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + 4)
        contents = {r["response"]["body"]["choices"][0]["message"]["content"]
                    for r in records.values()}  # fmt: skip
        self.assertEqual(len(contents), 1)

    def test_odd_but_accepted_files(self):
        a, b = json.dumps(short_line("a", "x")), json.dumps(short_line("b", "y"))
        self.write("in.jsonl", f"\ufeff{a}\r\n\r\n  \n{b}")
        self.batch()
        self.assertEqual(set(self.records()), {"a", "b"})

    def test_empty_input(self):
        self.write("in.jsonl", "")
        result = self.batch()
        self.assertIn("0 requests", result.err)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "")

    def test_stats(self):
        self.write_input(short_line("a", "x"), short_line("b", "y"))
        self.batch("--stats-json", "stats.json")
        stats = json.loads((self.folder / "stats.json").read_text())
        self.assertEqual((stats["requests"], stats["answered"], stats["errors"]), (2, 2, 0))


class Errors(BatchCase):
    def test_bad_lines_fail_alone(self):
        bad = [
            ("{", "not valid JSON"),
            ("null", "JSON object"),
            ("[]", "JSON object"),
            ('{"id": "x1", "prompt": "a"} {}', "not valid JSON"),
            ('{"id": "x2", "prompt": "\\ud800"}', "not valid JSON"),
            ('{"id": "x3", "prompt": "a", "prompt": "b"}', "duplicate key"),
            ("[" * 100 + "]" * 100, "nesting"),
            ({"prompt": "a"}, "custom_id"),
            ({"id": 5, "prompt": "a"}, "id must be a string"),
            ({"id": "y1"}, "messages is missing"),
            ({"id": "y2", "prompt": ""}, "prompt is empty"),
            ({"id": "y3", "prompt": 5}, "prompt must be a string"),
            ({"id": "y4", "messages": []}, "messages is empty"),
            ({"id": "y5", "messages": [{"role": "user"}]}, "messages[0].content is missing"),
            ({"id": "y6", "messages": [{"role": "robot", "content": "a"}]}, "messages[0].role"),
            (short_line("z1", "a", max_tokens=-1), "max_tokens"),
            (short_line("z2", "a", max_tokens=1e12), "max_tokens"),
            (short_line("z3", "a", max_tokens="5"), "max_tokens"),
            (short_line("z4", "a", temperature="hot"), "temperature must be a number"),
            (short_line("z5", "a", top_p=3), "top_p"),
            (short_line("z6", "a", frobnicate=1), "frobnicate is not supported"),
            (short_line("z7", "a", stop=[1]), "stop[0]"),
            (openai_line("z8", "a", n=2), "body.n is not supported"),
            (openai_line("z9", "a", tools=[]), "body.tools"),
            ({**openai_line("z10", "a"), "url": "/v1/embeddings"}, "url"),
            (short_line("z11", "word " * 400), "> limit"),
        ]
        self.write_input(short_line("first", "x"), *[line for line, _ in bad],
                         short_line("last", "x"))  # fmt: skip
        self.batch(code=3)
        records = read_json_lines(self.folder / "out.jsonl")
        self.assertEqual(len(records), len(bad) + 2)
        self.assertIsNone(records[0]["error"])
        self.assertIsNone(records[-1]["error"])
        for number, ((line, text), record) in enumerate(zip(bad, records[1:]), start=2):
            with self.subTest(line=line):
                self.assertIsNone(record["response"])
                self.assertIn(text, record["error"]["message"])
                self.assertEqual(record["error"]["line"], number)

    def test_strict_stops_before_loading(self):
        self.write_input(short_line("a", "x"), "{")
        result = self.batch("--strict", flags=["-m", "missing"], code=1)
        self.assert_one_error(result, "in.jsonl:2")
        self.assertFalse((self.folder / "out.jsonl").exists())

    def test_duplicate_ids(self):
        self.write_input(short_line("a", "x"), short_line("b", "x"), short_line("a", "y"))
        result = self.batch(code=1)
        self.assert_one_error(result, "in.jsonl:3")
        self.assertIn("line 1", result.err)


class Files(BatchCase):
    def setUp(self):
        super().setUp()
        self.write_input(short_line("a", "x"))

    def test_input_is_output(self):
        self.assert_one_error(self.batch(output="in.jsonl", code=2), "same file")
        (self.folder / "link").symlink_to("in.jsonl")
        self.assert_one_error(self.batch("--overwrite", output="link", code=2), "same file")
        self.assertNotEqual((self.folder / "in.jsonl").read_text(), "")

    def test_existing_output(self):
        self.write("out.jsonl", "precious\n")
        result = self.batch(code=2)
        self.assert_one_error(result, "exists")
        self.assertIn("--resume", result.err)
        self.assertIn("--overwrite", result.err)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "precious\n")
        self.assert_one_error(self.batch("--resume", code=1), "not a batch result")
        self.assertEqual((self.folder / "out.jsonl").read_text(), "precious\n")
        self.batch("--overwrite")
        self.assertEqual(set(self.records()), {"a"})

    def test_unwritable_places_are_found_before_the_model_loads(self):
        missing_model = ["-m", "missing"]
        result = self.batch(output="no/such/folder/out.jsonl", flags=missing_model, code=1)
        self.assert_one_error(result, "No such file")
        result = self.batch(output=".", flags=missing_model, code=1)
        self.assert_one_error(result, "directory")

    def test_missing_input(self):
        os.remove(self.folder / "in.jsonl")
        self.assert_one_error(self.batch(code=1), "in.jsonl")

    def test_full_disk(self):
        result = self.batch(output="/dev/full", code=1)
        self.assert_one_error(result, "No space left")
        self.assertIn("0 results of this run are safe", result.err)
        self.assertIn("--resume", result.err)

    def test_output_in_use(self):
        import fcntl

        with open(self.folder / "out.jsonl", "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.assert_one_error(self.batch(code=1), "another run")


class Resume(BatchCase):
    LINES = [short_line(f"item {i}", f"question {i}", max_tokens=100) for i in range(16)]

    def test_answers_are_kept_and_errors_tried_again(self):
        self.write_input(*self.LINES[:2], "{")
        self.batch(code=3)
        before = self.records()
        self.write_input(*self.LINES[:4])
        result = self.batch("--resume")
        self.assertIn("2 answered before", result.err)
        self.assertIn("error records", result.err)
        after = self.records()
        self.assertEqual(set(after), {"item 0", "item 1", "item 2", "item 3"})
        self.assertEqual(after["item 0"], before["item 0"])

    def test_torn_line(self):
        self.write_input(*self.LINES[:3])
        self.batch()
        path = self.folder / "out.jsonl"
        whole = path.read_text()
        path.write_text(whole[:-20])
        result = self.batch("--resume")
        self.assertIn("torn", result.err)
        self.assertEqual(path.read_text(), whole)

    def test_nothing_left_needs_no_model(self):
        self.write_input(*self.LINES[:2])
        self.batch()
        self.batch("--resume", flags=["-m", "missing"])

    def start_batch(self, flags, *arguments):
        return self.start("batch", *flags, "-i", "in.jsonl", "-o", "out.jsonl", *arguments)

    def num_lines(self):
        path = self.folder / "out.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    def test_killed_and_resumed(self):
        flags = self.long_model()
        self.write_input(*self.LINES)
        self.batch(flags=flags, output="reference.jsonl")
        chance = random.Random(1)
        arguments = []
        for _ in range(8):
            process = self.start_batch(flags, *arguments)
            try:
                process.wait(timeout=chance.uniform(0.02, 0.3))
            except Exception:
                process.send_signal(signal.SIGKILL)
            process.communicate()
            arguments = ["--resume"]
        self.batch("--resume", flags=flags)
        records = read_json_lines(self.folder / "out.jsonl")
        self.assertEqual(len(records), len(self.LINES))
        self.assertEqual(self.records(), self.records("reference.jsonl"))

    def test_interrupt_says_how_to_go_on(self):
        flags = self.long_model()
        endless = [short_line(f"{i}", "x", max_tokens=3000) for i in range(50)]
        self.write_input(short_line("quick", "x", max_tokens=1), *endless)
        process = self.start_batch(flags)
        deadline = time.monotonic() + 60
        while self.num_lines() == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"--resume", err)
        self.assertIn(b"--seed", err)
        for record in read_json_lines(self.folder / "out.jsonl"):
            self.assertIsNone(record["error"])
