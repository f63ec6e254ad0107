"""Rows 65 to 73: prompts, and logits that are not finite."""

import json
import os

from rows.contract import Row
from rows.model_files import Safetensors
from support import raw

CONTEXT = 256  # tokens of the tiny model


class Prompts(Row):
    def prompt_refused(self, prompt, words, code=1, **options):
        """Given as a file, which a prompt with any bytes can be."""
        self.write("prompt.txt", prompt)
        return self.refused("generate", *self.model, "-f", "prompt.txt", words=words, code=code,
                            **options)  # fmt: skip

    def accepted(self, prompt, *arguments, model=None):
        self.write("prompt.txt", prompt)
        return self.works("generate", *(model or self.model), "-f", "prompt.txt", "-n", "4",
                          *arguments, "--stats-json", "stats.json")  # fmt: skip

    def raw_tokens(self, prompt):
        self.accepted(prompt, model=raw(self.model))
        return json.loads((self.folder / "stats.json").read_text())["prompt_tokens"]

    def test_row_065_empty(self):
        for prompt in ("", " \n\t\r\n"):
            self.prompt_refused(prompt, "is empty", path="prompt.txt")
            self.refused("generate", *self.model, "-p", prompt, words="prompt is empty", code=2)
            self.refused("generate", *self.model, "-p", "-", words="standard input: is empty",
                         stdin=prompt)  # fmt: skip
        self.assertEqual(self.works("chat", *self.model, stdin="\n   \n").out, "")

    def test_row_066_invalid_utf8(self):
        for prompt, offset in [(b"caf\xe9", 3), (b"\xc0\xaf", 0), (b"ab\xed\xa0\x80", 2)]:
            self.prompt_refused(prompt, [f"invalid byte at offset {offset}"], path="prompt.txt",
                                hint="--replace-invalid")  # fmt: skip
            self.accepted(prompt, "--replace-invalid")

    def test_row_067_odd_text(self):
        for prompt in (b"a\0b", "a▁b", b"a\r\nb", "🦊🏳️‍🌈", "e\u0301\u0308", "\u202eabc"):
            self.accepted(prompt)

    def test_row_068_longer_than_the_context(self):
        # What cannot fit by its length alone is not even tokenised.
        result = self.prompt_refused("word " * 1000, "5000 bytes are at least 555 tokens")
        self.assertNotIn("truncat", result.err)
        result = self.prompt_refused("word " * 300, "+ reserved 1 > limit 256 tokens",
                                     hint="tessera summarize reads texts of any length")  # fmt: skip
        self.assertNotIn("truncat", result.err)
        self.write("in.jsonl", json.dumps({"id": "a", "prompt": "word " * 1000}) + "\n"
                   + json.dumps({"id": "b", "prompt": "hi", "max_tokens": 2}) + "\n")  # fmt: skip
        result = self.measured("batch", *self.model, "-i", "in.jsonl", "-o", "out.jsonl")
        self.assertEqual(result.code, 3, result.err)
        records = [json.loads(line) for line in (self.folder / "out.jsonl").open()]
        errors = {record["custom_id"]: record["error"] for record in records}
        self.assertIn("555 tokens", errors["a"]["message"])
        self.assertIn("--on-overflow middle", errors["a"]["message"])
        self.assertIsNone(errors["b"])

    def test_row_069_at_the_limit(self):
        # Each sign is a token, so that a text of any length can be made.
        one, two = (self.raw_tokens("?" * count) for count in (1, 2))
        self.assertEqual(two - one, 1)

        def text_of(tokens):
            return "?" * (tokens - one + 1)

        self.refused("generate", *raw(self.model), "-p", text_of(CONTEXT),
                     words=f"prompt {CONTEXT} + reserved 1 > limit {CONTEXT}")  # fmt: skip
        for room in (1, 2):
            self.works("generate", *raw(self.model), "-p", text_of(CONTEXT - room),
                       "--ignore-eos", "--stats-json", "stats.json")  # fmt: skip
            stats = json.loads((self.folder / "stats.json").read_text())
            self.assertEqual(stats["prompt_tokens"], CONTEXT - room)
            self.assertEqual(stats["completion_tokens"], room)
            self.assertEqual(stats["finish_reason"], "length")

    def test_row_070_special_tokens_typed(self):
        plain = self.raw_tokens("x")
        for token in ("</s>", "<s>", "<|eot_id|>", "<end_of_turn>", "[INST]"):
            self.assertGreater(self.raw_tokens("x" + token), plain + 1, token)

    def test_row_071_long_text(self):
        limit = "the context holds 256"
        for prompt in ("a" * 80_000, "ab " * 500_000):
            self.prompt_refused(prompt, limit)
        self.prompt_refused("x" + " " * (4 << 20) + "x", limit)

    def test_row_072_no_text_file(self):
        self.refused("generate", *self.model, "-f", self.folder, path=self.folder,
                     words="is a directory")  # fmt: skip
        self.refused("generate", *self.model, "-f", "absent.txt", path="absent.txt",
                     words="No such file")  # fmt: skip
        self.prompt_refused(b"\x7fELF\0\0\xff\xfe", "looks like a binary file", path="prompt.txt")
        for content, words, hint in [
            ("two words".encode("utf-16"), "is UTF-16 text", "iconv -f UTF-16"),
            ("two words".encode("utf-16-le"), "looks like UTF-16 text", "iconv -f UTF-16"),
            ("two words".encode("utf-16-be"), "looks like UTF-16 text", "iconv -f UTF-16"),
            (b"%PDF-1.7\nplain", "is a PDF file", "pdftotext"),
            (b"PK\x03\x04", "is a ZIP archive or an Office document", "pandoc"),
            (b"\x1f\x8b\x08", "is a file compressed by gzip", "gzip -d"),
        ]:
            self.prompt_refused(content, words, path="prompt.txt", hint=hint)
        if os.geteuid() != 0:
            (self.folder / "prompt.txt").chmod(0)
            self.refused("generate", *self.model, "-f", "prompt.txt", words="Permission denied")


class Numerics(Row):
    def test_row_073_logits_that_are_not_finite(self):
        folder = self.folder_with()
        weights = Safetensors(folder / "model.safetensors")
        # An output layer of its own, so that one input token's NaN stays its own.
        embedding = weights.tensors["model.embed_tokens.weight"]
        weights.tensors["lm_head.weight"] = list(embedding)
        question_mark = 3 + ord("?")  # byte pieces follow <unk>, <s> and </s>
        values = bytearray(embedding[2])
        row_bytes = len(values) // embedding[1][0]
        row = slice(question_mark * row_bytes, (question_mark + 1) * row_bytes)
        values[row] = b"\0\0\xc0\x7f" * (row_bytes // 4)
        embedding[2] = bytes(values)
        weights.save()
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
        flags = [*self.flags(folder), "--chat-template", "llama2"]
        self.refused("generate", *raw(flags), "-p", "?",
                     words="non-finite logits at position ")  # fmt: skip
        lines = [{"id": "a", "prompt": "x"}, {"id": "b", "prompt": "?"}, {"id": "c", "prompt": "y"}]
        self.write("in.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        result = self.measured("batch", *flags, "-n", "3", "-i", "in.jsonl", "-o", "out.jsonl")
        self.assertEqual(result.code, 3, result.err)
        records = [json.loads(line) for line in (self.folder / "out.jsonl").open()]
        errors = {record["custom_id"]: record["error"] for record in records}
        self.assertIsNone(errors["a"])
        self.assertIn("non-finite logits at position ", errors["b"]["message"])
        self.assertIsNone(errors["c"])
