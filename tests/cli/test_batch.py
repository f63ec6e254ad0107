"""tessera batch: every line answered once, whatever happens on the way."""

import json
import os
import time

from support import TIMEOUT_SECONDS, Case, read_records


def openai_line(custom_id, content, **body):
    body = {"messages": [{"role": "user", "content": content}], **body}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def short_line(custom_id, prompt, **fields):
    return {"id": custom_id, "prompt": prompt, **fields}


def without_time(record):
    """The record but for when its answer was finished."""
    if record["response"]:
        del record["response"]["body"]["created"]
    return record


class BatchCase(Case):
    def write_input(self, *lines, name="in.jsonl"):
        text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
        return self.write(name, text)

    def batch(self, *arguments, code=0, output="out.jsonl", flags=None):
        return self.check("batch", *(flags or self.model), "-i", "in.jsonl", "-o", output,
                          "-n", "8", *arguments, code=code)  # fmt: skip

    def wait_for_answer(self, name="out.jsonl"):
        path = self.folder / name
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not path.exists() or b"\n" not in path.read_bytes():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)

    def records(self, name="out.jsonl"):
        """What may not depend on when a run was made, by custom_id."""
        return {r["custom_id"]: without_time(r) for r in read_records(self.folder / name)}

    def answers(self, name="out.jsonl"):
        """The choices by custom_id: what may not depend on how a run went."""
        return {custom_id: record["response"]["body"]["choices"]
                for custom_id, record in self.records(name).items()}  # fmt: skip

    def digest(self, result):
        return result.err.split("digest ")[1].split()[0]


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
        result = self.batch("--stats-json", "stats.json")
        stats = json.loads((self.folder / "stats.json").read_text())
        self.assertEqual((stats["requests"], stats["answered"], stats["errors"]), (2, 2, 0))
        self.assertGreater(stats["completion_tokens_per_second"], 0)
        self.assertLessEqual(stats["generation_seconds"], stats["seconds"])
        self.assertEqual(stats["preemptions"], 0)
        self.assertGreater(stats["longest_token_wait_seconds"], 0)
        self.assertLess(stats["longest_token_wait_seconds"], stats["generation_seconds"])
        self.assertIn(f", longest wait {stats['longest_token_wait_seconds']:.3f} s |", result.err)


    def test_seed_that_was_chosen_is_printed(self):
        self.write_input(short_line("a", "x"), short_line("b", "x", seed=3))
        first = self.batch("--temp", "1", "--stats-json", "stats.json")
        stats = json.loads((self.folder / "stats.json").read_text())
        self.assertIn(f" s | seed {stats['seed']} | digest ", first.err)
        self.batch("--temp", "1", "--seed", stats["seed"], output="again.jsonl")
        self.assertEqual(self.records("again.jsonl"), self.records())
        for flags in (("--temp", "1", "--seed", "5"), ("--temp", "0")):
            self.assertNotIn("seed", self.batch("--overwrite", *flags).err)
        self.write_input(short_line("b", "x", seed=3))
        self.assertNotIn("seed", self.batch("--overwrite", "--temp", "1").err)

    def test_progress_on_a_terminal_of_80_columns(self):
        lines = [short_line(f"{i}", "x", max_tokens=2000, ignore_eos=True) for i in range(40)]
        self.write_input(*lines)
        terminal = self.terminal("batch", *self.long_model(), "-i", "in.jsonl", "-o", "out.jsonl")
        line = terminal.expect(r"\rbatch \[([^\r]*ETA \d[^\r]*)\x1b\[K")[1]
        self.assertRegex(line, r"\d/40, [\d.]+( K)? tok/s, ETA \d")
        self.assertLess(len("batch [" + line), 80)


class Errors(BatchCase):
    def test_bad_lines_fail_alone(self):
        bad = [
            ("{", "invalid JSON"),
            ("null", "JSON object"),
            ("[]", "JSON object"),
            ('{"id": "x1", "prompt": "a"} {}', "invalid JSON"),
            ('{"id": "x2", "prompt": "\\ud800"}', "invalid JSON"),
            ('{"id": "x3", "prompt": "a", "prompt": "b"}', "duplicate key"),
            ("[" * 100 + "]" * 100, "nesting"),
            ({"prompt": "a"}, "custom_id"),
            ({"id": 5, "prompt": "a"}, "id must be a string"),
            ({"id": "y1"}, "messages or prompt is needed"),
            ({"id": "y7", "prompt": None}, "messages or prompt is needed"),
            ({**openai_line("y8", "a"), "body": {}}, "body.messages is missing"),
            ({"id": "y2", "prompt": ""}, "prompt is empty"),
            ({"id": "y3", "prompt": 5}, "prompt must be a string"),
            ({"id": "y4", "messages": []}, "messages is empty"),
            ({"id": "y5", "messages": [{"role": "user"}]}, "messages[0].content is missing"),
            ({"id": "y6", "messages": [{"role": "robot", "content": "a"}]}, "messages[0].role"),
            (short_line("z1", "a", max_tokens=-1), "max_tokens"),
            (short_line("z2", "a", max_tokens=1e12), "max_tokens"),
            (short_line("z3", "a", max_tokens="5"), "max_tokens"),
            (short_line("z4", "a", temperature="hot"), "temperature must be 0 or a number in 0.01..100"),
            (short_line("z5", "a", top_p=3), "top_p"),
            (short_line("z6", "a", frobnicate=1), "frobnicate is not supported"),
            (short_line("z7", "a", stop=[1]), "stop[0]"),
            (short_line("z12", "a", stop=["a", ""]), "stop[1] is empty"),
            (openai_line("z13", "a", stop=""), "body.stop is empty"),
            (short_line("z14", "a", seed=-1.0), "seed must be an integer in 0..1844"),
            (openai_line("z8", "a", n=0), "body.n must be an integer in 1..128"),
            (openai_line("z9", "a", tools="x"), "body.tools"),
            ({**openai_line("z10", "a"), "url": "/v1/embeddings"}, "url"),
            (short_line("z11", "word " * 400), "> limit"),
            ('{"id": "w1", "prompt": "a", "temperature": 1e999}', "the number 1e999 at byte 43"),
            ('{"id": "w2", "prompt": "a", "metadata": {"a": -1e400}}', "the number -1e400"),
            ('{"id": "w3", "prompt": "a", "seed": 1e99}', "seed must be an integer in 0..1844"),
            ('{"id": "w4", "prompt": "a", "seed": 18446744073709551616}',
             "seed: the integer 18446744073709551616 does not fit in 64 bits"),
            ({"id": "w5", "messages": [{"role": "user", "content": [{"type": 5, "text": "a"}]}]},
             "messages[0].content[0] must be a text part"),
            ({"id": "w6", "messages": [{"role": "user", "content": [{"type": None}]}]},
             "messages[0].content[0] must be a text part"),
            ({"id": "w7", "messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
             "messages[0].content[0].text must be a string"),
            ({"id": "w8", "messages": [{"role": {}, "content": "a"}]}, "messages[0].role"),
            ({"id": "w9", "messages": [[]]}, "messages[0] must be an object"),
            ({"id": "w10", "messages": {}}, "messages must be an array"),
            ({"id": "w11", "prompt": "a", "stop": {"a": 1}}, "stop must be a string"),
            ({**openai_line("w12", "a"), "method": ["POST"]}, "method must be"),
            ({"custom_id": "w13", "body": "a"}, "body must be an object"),
            ({"custom_id": "w18", "method": "POST", "url": "/v1/completions"}, "body is missing"),
            ({"custom_id": "w19", "prompt": "a", "method": "POST"}, "body is missing"),
            (short_line("w20", "a", top_k=2**63), "top_k must be an integer in -1..1073741824, got 92"),
            (short_line("w21", "a", max_tokens="8k"), "max_tokens must be an integer"),
            ({"id": "w14", "prompt": "a", "k" * 5000: 1}, "kkk... is not supported"),
            ({"id": "w15", "prompt": "a", "top_p": "v" * 5000}, "vvv..."),
            ('{"id": "w16", "prompt": "a\0"}', "invalid JSON at byte"),
            ('{"id": "w17", "prompt": [%s]}' % ("0," * 2_000_000 + "0"), "2000000 JSON values"),
        ]
        self.write_input(short_line("first", "x"), *[line for line, _ in bad],
                         short_line("last", "x"))  # fmt: skip
        told = self.batch(code=3).err
        # On a busy machine progress is told before.
        self.assertRegex(told, r"(?m)^first error, in line 2: invalid JSON")
        records = read_records(self.folder / "out.jsonl")
        self.assertEqual(len(records), len(bad) + 2)
        self.assertIsNone(records[0]["error"])
        self.assertIsNone(records[-1]["error"])
        for number, ((line, text), record) in enumerate(zip(bad, records[1:]), start=2):
            with self.subTest(line=str(line)[:200]):
                self.assertIsNone(record["response"])
                self.assertIn(text, record["error"]["message"])
                self.assertEqual(record["error"]["line"], number)

    def test_tokens_of_errors_are_not_counted(self):
        # The last norm multiplies by the largest number there is: no logit stays finite.
        weights = self.copy_model("overflowing") / "model.safetensors"
        data = bytearray(weights.read_bytes())
        header_end = 8 + int.from_bytes(data[:8], "little")
        tensor = json.loads(data[8:header_end])["model.norm.weight"]
        begin, end = (header_end + offset for offset in tensor["data_offsets"])
        largest = {"F32": b"\xff\xff\x7f\x7f", "BF16": b"\x7f\x7f", "F16": b"\xff\x7b"}
        number = largest[tensor["dtype"]]
        data[begin:end] = number * ((end - begin) // len(number))
        weights.write_bytes(data)
        self.write_input(short_line("a", "x"))
        flags = ["-m", str(weights.parent), *self.model[2:]]
        self.batch("--stats-json", "stats", flags=flags, code=3)
        self.assertEqual(self.records()["a"]["error"]["code"], "non_finite_logits")
        stats = json.loads((self.folder / "stats").read_text())
        self.assertEqual((stats["errors"], stats["prompt_tokens"], stats["completion_tokens"]),
                         (1, 0, 0))  # fmt: skip

    def test_strict_stops_before_loading(self):
        self.write_input(short_line("a", "x"), "{")
        result = self.batch("--strict", flags=["-m", "missing"], code=1)
        self.assert_one_error(result, "in.jsonl:2")
        self.assertFalse((self.folder / "out.jsonl").exists())

    def test_over_long_line_fails_alone(self):
        line_bytes = 1 << 30
        path = self.write_input(short_line("first", "x"))
        with open(path, "r+b") as file:
            file.seek(line_bytes, os.SEEK_END)  # leaves a hole, which reads as zeros
            file.write(b"\n" + json.dumps(short_line("last", "x")).encode())
        self.batch("--stats-json", "stats", code=3)
        errors = [record["error"] for record in read_records(self.folder / "out.jsonl")]
        self.assertEqual([errors[0], errors[1]["code"], errors[2]], [None, "line_too_long", None])
        stats = json.loads((self.folder / "stats").read_text())
        self.assertLess(stats["peak_resident_bytes"], line_bytes)

    def test_json_over_a_limit_is_not_called_invalid(self):
        self.write_input(short_line("a", "x"))
        with open(self.folder / "in.jsonl", "a") as file:
            file.write('{"prompt": "x", "metadata": ' + "[" * 64 + "]" * 64 + "}\n")
            file.write('{"prompt": "' + "x" * (16 << 20) + 'y"}\n')
            file.write('{"prompt": "x", "seed": 1e999}\n')
            file.write('{"prompt": "x", "metadata": {"a": 18446744073709551616}}\n')
            file.write('{"prompt": }\n')
        self.batch(code=3)
        records = read_records(self.folder / "out.jsonl")
        errors = {record["error"]["line"]: record["error"]
                  for record in records if record["error"]}  # fmt: skip
        for line, message in [(2, "nesting too deep at byte 91 (limit 64)"),
                              (3, "longer than 16777216 bytes"),
                              (4, "1e999 at byte 24 is too large (limit 1.79769e+308)"),
                              (5, "a: the integer 18446744073709551616 does not fit")]:
            self.assertEqual(errors[line]["code"], "json_limit_exceeded")
            self.assertIn(message, errors[line]["message"])
        self.assertEqual(errors[6]["code"], "invalid_json")

    def test_duplicate_ids(self):
        self.write_input(short_line("a", "x"), short_line("b", "x"), short_line("a", "y"))
        result = self.batch(code=1)
        self.assert_one_error(result, "in.jsonl:3")
        self.assertIn("line 1", result.err)
