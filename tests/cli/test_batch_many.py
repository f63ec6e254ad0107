"""tessera batch: many requests at once, in parts, and a number that tells whether all is well."""

import json

import support
from support import read_json_lines
from test_batch import BatchCase, short_line


class Many(BatchCase):
    def setUp(self):
        super().setUp()
        self.lines = [short_line(f"item {i}", f"question {i}", max_tokens=1 + i % 13,
                                 ignore_eos=True) for i in range(90)]  # fmt: skip
        self.write_input(*self.lines)

    def stats(self, *arguments, output="out.jsonl", **options):
        self.batch("--stats-json", "stats", *arguments, output=output, **options)
        return json.loads((self.folder / "stats").read_text())


class Company(Many):
    def test_greedy_answers_do_not_depend_on_it(self):
        alone = self.stats("--temp", "0", "--max-sequences", "1")
        for count in (2, 7, 64, 300):
            stats = self.stats("--temp", "0", "--max-sequences", count, output=f"{count}.jsonl")
            self.assertEqual(stats["max_sequences"], count)
            self.assertEqual(self.answers(f"{count}.jsonl"), self.answers())
            self.assertEqual(stats["digest"], alone["digest"])

    def test_short_answers_do_not_wait_for_long_ones(self):
        self.write_input(short_line("long", "x", max_tokens=200, ignore_eos=True), *self.lines)
        self.batch("--max-sequences", "4")
        last = (self.folder / "out.jsonl").read_text().splitlines()[-30:]
        self.assertIn("long", [json.loads(line)["custom_id"] for line in last])


class Memory(BatchCase):
    def peak_bytes(self, count):
        """Of a run of `count` requests, every second one bad, whose names are long."""
        lines = []
        for number in range(count):
            body = {"prompt": [5, 6, 7], "max_tokens": -1 if number % 2 else 1}
            lines.append({"custom_id": f"{number} " + "x" * 1000, "url": "/v1/completions",
                          "body": body})  # fmt: skip
        self.write_input(*lines)
        self.batch("--overwrite", "--stats-json", "stats", code=3)
        errors = [record["error"] for record in read_json_lines(self.folder / "out.jsonl")]
        bad_lines = sorted(error["line"] for error in errors if error)
        self.assertEqual(bad_lines, list(range(2, count + 1, 2)))
        return json.loads((self.folder / "stats").read_text())["peak_resident_bytes"]

    def test_does_not_grow_with_the_file(self):
        if support.is_sanitized():
            self.skipTest("sanitizers keep what was freed")
        self.assertLess(self.peak_bytes(20_000) - self.peak_bytes(200), 10 << 20)


class Digest(Many):
    def test_differs_with_an_answer(self):
        first = self.stats("--temp", "0")["digest"]
        self.assertRegex(first, "^[0-9a-f]{64}$")
        self.lines[5]["prompt"] = "another question"
        self.write_input(*self.lines)
        self.assertNotEqual(self.stats("--temp", "0", "--overwrite")["digest"], first)

    def test_is_that_of_the_file_after_a_resume(self):
        whole = self.stats("--temp", "0")["digest"]
        lines = (self.folder / "out.jsonl").read_bytes().splitlines(keepends=True)
        self.write("out.jsonl", b"".join(lines[::3]) + b'{"id": "batch')
        stats = self.stats("--temp", "0", "--resume")
        self.assertEqual((stats["skipped"], stats["answered"]), (30, 60))
        self.assertEqual(stats["digest"], whole)

    def test_leaves_errors_and_statistics_out(self):
        whole = self.stats("--temp", "0")["digest"]
        self.write_input(*self.lines, "{")
        self.assertEqual(self.stats("--temp", "0", "--overwrite", code=3)["digest"], whole)


class Shards(Many):
    def test_make_up_the_whole(self):
        self.lines[40] = "{"
        self.write_input(*self.lines)
        self.batch("--temp", "0", code=3)
        joined = b""
        for index in range(4):
            name = f"out-{index}.jsonl"
            stats = self.stats("--temp", "0", "--shard", f"{index}/4", output=name,
                               code=3 if index == 0 else 0)  # fmt: skip
            self.assertEqual(stats["shard"], f"{index}/4")
            self.assertEqual(stats["requests"], 23 if index < 2 else 22)
            joined += (self.folder / name).read_bytes()
        self.write("joined.jsonl", joined)
        self.assertEqual(self.records("joined.jsonl"), self.records())

    def test_whole_file_is_checked(self):
        self.lines[1]["id"] = "item 2"
        self.write_input(*self.lines)
        result = self.batch("--shard", "0/4", code=1)
        self.assert_one_error(result, 'in.jsonl:3: custom_id "item 2" was already used on line 2')

    def test_another_shard_cannot_go_on(self):
        self.batch("--shard", "0/4")
        result = self.batch("--shard", "1/4", "--resume", code=2)
        self.assert_one_error(result, 'shard was "0/4", now "1/4"')
        self.batch("--shard", "0/4", "--resume")

    def test_bad_shards(self):
        for text in ("4/4", "-1/4", "1", "1/", "/4", "a/b", "1/0", "", "0/1000000"):
            result = self.batch("--shard", text, code=2)
            self.assert_one_error(result, "--shard must be I/N, with I in 0..N-1")
