"""--on-overflow: prompts that do not fit, in the commands that answer prompts."""

import json
import re

from support import Case, raw, read_records

CONTEXT = 256  # tokens of the tiny model
LONG = "beginning " + "middle " * 300 + "end"


class Overflow(Case):
    def generate(self, *arguments, prompt=LONG, model=None, **options):
        path = self.write("prompt.txt", prompt)
        return self.check("generate", *(model or self.model), "-f", path, *arguments, "--stats-json",
                          "stats.json", **options)  # fmt: skip

    def stats(self):
        return json.loads((self.folder / "stats.json").read_text())

    def test_refused_unless_asked_for(self):
        for flags in ([], ["--on-overflow", "error"]):
            result = self.generate("-n", "8", *flags, code=1)
            self.assert_one_error(result, f"limit {CONTEXT} tokens")

    def test_the_middle_is_left_out_and_that_is_said(self):
        for model in (self.model, raw(self.model)):
            result = self.generate("-n", "8", "--on-overflow", "middle", model=model)
            stats = self.stats()
            match = re.search(r"does not fit: its tokens (\d+) to (\d+) \((\d+) tokens\)",
                              result.err)  # fmt: skip
            begin, end, count = (int(number) for number in match.groups())
            self.assertEqual(end - begin + 1, count)
            self.assertEqual(stats["left_out"], [{"begin": begin, "tokens": count}])
            self.assertLessEqual(stats["prompt_tokens"], CONTEXT - 8)
            self.assertGreater(stats["prompt_tokens"], CONTEXT - 16)

    def test_what_fits_stays_whole(self):
        whole = self.generate("-n", "8", prompt="short")
        result = self.generate("-n", "8", "--on-overflow", "middle", prompt="short")
        self.assertEqual(result.out, whole.out)
        self.assertNotIn("left_out", self.stats())

    def test_the_answer_keeps_its_room(self):
        self.generate("--on-overflow", "middle", "--ignore-eos")
        self.assertGreaterEqual(self.stats()["completion_tokens"], CONTEXT // 4)

    def test_characters_stay_whole(self):
        for prompt in ("🦊" * 400, "é" * 900, "日本" * 400):
            result = self.generate("-n", "2", "--on-overflow", "middle", prompt=prompt)
            self.assertIn("were left out", result.err)

    def test_no_room_for_anything(self):
        result = self.generate("-n", "240", "--on-overflow", "middle", code=1)
        self.assert_one_error(result, f"limit {CONTEXT} tokens")

    def test_parts_are_for_summarize(self):
        for command, flags in [("generate", ["-p", "x"]), ("chat", []),
                               ("batch", ["-i", "in", "-o", "out"])]:  # fmt: skip
            result = self.check(command, *self.model, *flags, "--on-overflow", "chunk", code=2)
            self.assert_one_error(result, "only summarize does")
            result = self.check(command, *self.model, *flags, "--on-overflow", "x", code=2)
            self.assert_one_error(result, "must be error or middle")

    def test_chat(self):
        result = self.check("chat", *self.model, "-n", "4", stdin=LONG, code=3)
        self.assertIn("does not fit", result.err)
        result = self.check("chat", *self.model, "-n", "4", "--on-overflow", "middle",
                            "--stats-json", "stats.json", stdin=LONG)  # fmt: skip
        self.assertIn("were left out", result.err)
        (gap,) = self.stats()["left_out"]
        self.assertGreater(gap["tokens"], 100)

    def test_a_chat_of_several_long_messages(self):
        result = self.check("chat", *self.model, "-n", "4", "--on-overflow", "middle",
                            "--stats-json", "stats.json",
                            stdin=f"{LONG}\n{LONG}\nshort\n")  # fmt: skip
        lines = (self.folder / "stats.json").read_text().splitlines()
        first, second, third = map(json.loads, lines)
        self.assertEqual([len(first["left_out"]), len(second["left_out"])], [1, 2])
        for stats in (second, third):
            self.assertLessEqual(stats["prompt_tokens"], CONTEXT - 4)
            self.assertGreater(stats["prompt_tokens"], CONTEXT - 16)
            one, other = stats["left_out"]
            self.assertGreater(other["begin"], one["begin"] + one["tokens"])
            self.assertAlmostEqual(one["tokens"], other["tokens"], delta=16)
            self.assertIn(f"the middles of its 2 longest texts ({one['tokens'] + other['tokens']} "
                          "tokens) were left out", result.err)  # fmt: skip

    def test_batch_says_what_would_fit(self):
        requests = [{"id": "prompt", "prompt": LONG},
                    {"id": "answer", "prompt": "hi", "max_tokens": CONTEXT}]  # fmt: skip
        self.write("in.jsonl", "".join(json.dumps(request) + "\n" for request in requests))
        self.check("batch", *self.model, "-n", "4", "-i", "in.jsonl", "-o", "out.jsonl", code=3)
        errors = [record["error"] for record in read_records(self.folder / "out.jsonl")]
        self.assertIn("> limit 256 tokens; shorten the prompt, or leave its middle out with "
                      "--on-overflow middle", errors[0]["message"])  # fmt: skip
        self.assertIn("> limit 256 tokens; shorten the prompt or lower max_tokens",
                      errors[1]["message"])  # fmt: skip

    def test_batch(self):
        requests = [{"id": "long", "prompt": LONG}, {"id": "short", "prompt": "hi"},
                    {"id": "hopeless", "prompt": LONG, "max_tokens": CONTEXT - 8}]  # fmt: skip
        self.write("in.jsonl", "".join(json.dumps(request) + "\n" for request in requests))
        flags = ["batch", *self.model, "-n", "4", "-i", "in.jsonl", "-o", "out.jsonl"]
        self.check(*flags, code=3)
        result = self.check(*flags, "--overwrite", "--on-overflow", "middle", code=3)
        self.assertIn("1 without the middle of the prompt", result.err)
        records = read_records(self.folder / "out.jsonl")
        details = [record["response"]["body"]["usage"]["prompt_tokens_details"]
                   for record in records[:2]]  # fmt: skip
        self.assertEqual(records[2]["error"]["code"], "context_length_exceeded")
        self.assertGreater(details[0]["left_out_tokens"], 100)
        self.assertNotIn("left_out_tokens", details[1])
        # Answers to shortened prompts are not mixed with others.
        self.assertIn("on_overflow", self.check(*flags, "--resume", code=2).err)
