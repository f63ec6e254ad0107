"""Rows 53 to 64: tokenizers, generation_config.json and chat templates."""

import json
import random

from rows import model_files
from rows.contract import Row
from rows.model_files import CONTROL, NORMAL, UNKNOWN, field, piece, pieces_of, with_pieces
from support import edit_json


class Tokenizer(Row):
    def setUp(self):
        super().setUp()
        self.model_folder = self.folder_with()
        self.path = self.model_folder / "tokenizer.model"
        self.good = self.path.read_bytes()

    def tokenizer_refused(self, content, words):
        self.path.write_bytes(content)
        return self.folder_refused(self.model_folder, words, "tokenizer.model")

    def test_row_053_no_tokenizer(self):
        self.path.unlink()
        self.folder_refused(self.model_folder, "neither tokenizer.json nor tokenizer.model")
        (self.model_folder / "tokenizer.json").write_text("{}")
        self.folder_refused(self.model_folder, "model is missing", "tokenizer.json")

    def test_row_054_noise(self):
        noise = random.Random(54).randbytes(5000)
        for content in (noise, self.good[: len(self.good) // 2], self.good[:-1], b""):
            self.tokenizer_refused(content, "not a valid SentencePiece model")

    def test_row_055_normaliser(self):
        # What crashes SentencePiece when it is damaged is refused whatever it holds.
        for charsmap in (b"x", random.Random(55).randbytes(1 << 16)):
            self.tokenizer_refused(self.good + field(3, field(2, charsmap)),
                                   "unsupported normaliser (precompiled_charsmap)")  # fmt: skip

    def test_row_056_pieces(self):
        pieces = pieces_of(self.good)
        last = len(pieces)
        for added, words in [
            (piece(b"x" * (5 << 20)), [f"piece {last} is 5242880 bytes long"]),
            (piece(b"\0a"), [f"piece {last} (\\x00a)", "NUL"]),
            (piece(b"\xff"), [f"piece {last} (\\xff)", "not UTF-8"]),
            (piece(b""), [f"piece {last} is empty"]),
            (piece(b"</s>", CONTROL), [f"piece {last} (</s>)", "occurs twice"]),
            (piece(b"other unknown", UNKNOWN), ["2 pieces of type UNKNOWN"]),
        ]:
            self.tokenizer_refused(with_pieces(self.good, [*pieces, added]), words)
        self.tokenizer_refused(with_pieces(self.good, [piece(b"<unk>", NORMAL), *pieces[1:]]),
                               "0 pieces of type UNKNOWN")  # fmt: skip

    def test_row_057_more_pieces_than_rows(self):
        pieces = pieces_of(self.good)
        added = [piece(b"more%d" % i) for i in range(321 - len(pieces))]
        self.tokenizer_refused(with_pieces(self.good, pieces + added),
                               ["321 pieces", "vocab_size 320"])  # fmt: skip

    def test_row_058_tokenizer_json(self):
        self.path.unlink()
        path = self.model_folder / "tokenizer.json"
        good = {"added_tokens": [{"id": 1, "content": "<s>"}, {"id": 2, "content": "</s>"}],
                "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"},
                "model": {"type": "BPE", "vocab": {"x": 0}, "merges": []}}  # fmt: skip
        path.write_text(json.dumps(good))
        self.works("generate", *self.flags(self.model_folder), "--raw", "-p", "x", "-n", "3")
        for damage, words in [
            ({"model": {"type": "WordPiece", "vocab": {"x": 0}}}, "model.type is WordPiece"),
            ({"model": {"type": "Unigram", "vocab": [["x", 0.0]]}}, "model.unk_id is missing"),
            ({"model": {"type": "BPE", "vocab": {"x": 320}, "merges": []}}, "vocab_size 320"),
            ({"model": {"type": "BPE", "vocab": {"x": 0}, "merges": ["x y"]}}, "merges[0]"),
            ({"decoder": None}, "decoder is missing"),
            ({"normalizer": {"type": "NF\x9bKC"}}, "normalizer.type is NF\\xc2\\x9bKC"),
        ]:
            path.write_text(json.dumps({**good, **damage}))
            self.folder_refused(self.model_folder, words, "tokenizer.json")
        for content in (b"[", b"{", b"\0", json.dumps(good).encode()[:-1]):
            path.write_bytes(content)
            self.folder_refused(self.model_folder, "invalid JSON at byte", "tokenizer.json")
        path.write_bytes(b"")
        self.folder_refused(self.model_folder, "file is empty; expected JSON", "tokenizer.json")
        path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
        self.folder_refused(self.model_folder, "Git LFS pointer, not JSON", "tokenizer.json",
                            hint="git lfs pull")  # fmt: skip
        path.write_bytes(b"[" * (1 << 20))
        self.folder_refused(self.model_folder, "JSON nesting too deep", "tokenizer.json")
        path.write_text("[1, 2]")
        self.folder_refused(self.model_folder, "must be a JSON object", "tokenizer.json")

    def test_row_059_padded_vocabulary(self):
        pieces = pieces_of(self.good)
        self.path.write_bytes(with_pieces(self.good, pieces[:-20]))
        shown = json.loads(self.works("inspect", *self.flags(self.model_folder), "--json").out)
        self.assertLess(shown["tokenizer_size"], shown["config"]["vocab_size"])
        # Nearly every token of the vocabulary is as likely as another.
        self.works("generate", *self.flags(self.model_folder), "--raw", "-p", "x", "--temp", "100",
                   "--seed", "1", "--ignore-eos", "-n", "200")  # fmt: skip

    def test_names_of_special_tokens_that_do_not_exist(self):
        for key in ("bos_token", "eos_token"):
            folder = self.folder_with(key)
            edit_json(folder / "tokenizer_config.json", **{key: "<nope\u009b\x1b>"})
            self.folder_refused(folder, ["names '<nope\\xc2\\x9b\\x1b>'", key])

    def test_added_tokens_that_cannot_be(self):
        edit_json(self.model_folder / "tokenizer_config.json",
                  added_tokens_decoder={"2000000000": {"content": "<x>"}})  # fmt: skip
        self.folder_refused(self.model_folder, ["<x>", "2000000000"])


class GenerationConfig(Row):
    def generation_refused(self, words, **values):
        folder = self.folder_with(f"model{len(list(self.folder.iterdir()))}")
        edit_json(folder / "generation_config.json", **values)
        return self.folder_refused(folder, words, "generation_config.json")

    def test_row_060_end_of_sequence_out_of_range(self):
        for value in ([2, -2], "2", 1 << 31):
            self.generation_refused("eos_token_id must be an integer in -1..2147483647",
                                    eos_token_id=value)  # fmt: skip
        for value, warning in [
            ([2, 320], "eos_token_id 320 is no token of a vocabulary of 320"), (-1, "")
        ]:  # fmt: skip
            folder = self.folder_with(f"model{len(list(self.folder.iterdir()))}")
            edit_json(folder / "generation_config.json", eos_token_id=value)
            result = self.works("inspect", *self.flags(folder))
            self.assertIn(warning, result.err)
            self.assertIn("ends at 2\n", result.out)

    def test_row_060_no_end_of_sequence(self):
        folder = self.folder_with(eos_token_id=None)
        edit_json(folder / "generation_config.json", eos_token_id=None)
        edit_json(folder / "tokenizer_config.json", eos_token=None)
        model = folder / "tokenizer.model"
        content = model.read_bytes()
        pieces = [raw.replace(b"</s>", b"</t>") for raw in pieces_of(content)]
        model.write_bytes(with_pieces(content, pieces))
        result = self.works("generate", *self.flags(folder), "--raw", "-p", "x", "-n", "3")
        self.assertIn("warning: no end-of-sequence token is known: answers stop only at "
                      "--max-tokens", result.err)  # fmt: skip

    def test_row_061_sampling(self):
        for name, values, allowed in [
            ("temperature", [-1, 101, 0.001, "1"], "0 or a number in 0.01..100"),
            ("top_p", [0, 2, -0.5], "a number above 0 and at most 1"),
            ("top_k", [-5, 1.5, True], "an integer in -1..1073741824"),
            ("min_p", [-0.1, 1.5], "a number in 0..1"),
            ("repetition_penalty", [0, -1, 101], "a number in 0.01..100"),
        ]:
            for value in values:
                self.generation_refused(f"{name} must be {allowed}, got {json.dumps(value)}",
                                        do_sample=True, **{name: value})  # fmt: skip
        folder = self.folder_with("nan")
        (folder / "generation_config.json").write_text('{"temperature": NaN}')
        self.folder_refused(folder, "invalid JSON at byte 16", "generation_config.json")


class ChatTemplates(Row):
    def template_refused(self, template, words):
        folder = self.folder_with(f"model{len(list(self.folder.iterdir()))}")
        edit_json(folder / "tokenizer_config.json", chat_template=template)
        self.refused("generate", *self.flags(folder), "-p", "x", words=words, path=folder,
                     hint="--raw")  # fmt: skip

    def test_row_062_malformed_template(self):
        self.template_refused("{% nosuch %}", ["chat template, line 1, column 4: unknown tag "])
        self.template_refused("{{ messages | nosuch }}", ["column 15: there is no filter 'nosuch'"])
        self.refused("generate", *self.model[:2], "--device", "cpu", "-p", "x",
                     words="the model has no chat template", hint="--chat-template")  # fmt: skip

    def test_row_063_templates_that_would_run_away(self):
        for template in ("{% if x %}" * 5000, "{{ " + "(" * 5000, "{{ range(10**9)|list }}",
                         "{{ 'a' * 10**10 }}"):  # fmt: skip
            self.template_refused(template, "chat template, line 1, column ")

    def test_row_064_roles_that_a_template_refuses(self):
        flags = [*self.model[:2], "--device", "cpu", "--chat-template", "mistral-v1"]
        self.refused("generate", *flags, "-p", "x", "--system", "s",
                     words="this chat template has no place for a system message")  # fmt: skip
        turns = [{"role": role, "content": "x"} for role in ("user", "user")]
        self.write("in.jsonl", json.dumps({"id": "a", "messages": turns}) + "\n")
        result = self.measured("batch", *flags, "-i", "in.jsonl", "-o", "out.jsonl")
        self.assertEqual(result.code, 3, result.err)
        record = json.loads((self.folder / "out.jsonl").read_text())
        self.assertIn("message 2 is from the user", record["error"]["message"])


class Writers(Row):
    def test_a_model_rewritten_piece_by_piece_is_the_same(self):
        good = (self.folder_with() / "tokenizer.model").read_bytes()
        self.assertEqual(with_pieces(good, pieces_of(good)), good)
        self.assertEqual(list(model_files.fields(model_files.piece(b"a")))[0][0], 1)
