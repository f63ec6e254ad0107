"""Nothing of a file or a model steers the terminal."""

import json
import os
import re

from rows.contract import RAW_CONTROLS
from rows.model_files import NORMAL, fields, piece, pieces_of, with_pieces
from support import Case

# What programs write to a terminal themselves: carriage returns, colours, wiping a line.
OWN_SEQUENCES = re.compile("\r|\x1b\\[[0-9;]*[mK]|\x1b\\[\\?2004[hl]")


class Escaping(Case):
    def model_that_answers_in_controls(self):
        """Every normal piece of its tokenizer turns the writing round and begins a sequence."""
        folder = self.copy_model("controls")
        path = folder / "tokenizer.model"
        content = path.read_bytes()
        pieces = pieces_of(content)
        for i, raw in enumerate(pieces):
            (_, _, message), = fields(raw)
            values = {number: value for number, _, value in fields(message)}
            if values.get(3, NORMAL) == NORMAL and values[1] != "▁".encode():
                pieces[i] = piece(f"\u202e{i}\u009b2J\u2066".encode())
        path.write_bytes(with_pieces(content, pieces))
        return ["generate", "-m", folder, "--device", "cpu", "--raw", "-p", "x", "--temp", "100",
                "--seed", "3", "--ignore-eos", "-n", "60"]  # fmt: skip

    def test_answers(self):
        arguments = self.model_that_answers_in_controls()
        piped = self.check(*arguments).out
        self.assertIn("\u202e", piped)
        self.assertIn("\u009b2J", piped)
        terminal = self.terminal(*arguments)
        self.assertEqual(terminal.exit_code(), 0)
        self.assertIn("\\xe2\\x80\\xae", terminal.seen)
        self.assertIn("\\xc2\\x9b2J", terminal.seen)
        self.assertIsNone(RAW_CONTROLS.search(OWN_SEQUENCES.sub("", terminal.seen)))

    def test_log_lines_and_statistics(self):
        folder = self.copy_model("a\x1b[2J\u009b\u202eb")
        arguments = ["generate", "-m", folder, "--device", "cpu", "--raw", "-p", "x", "-n", "1",
                     "-v", "--stats-json", "-"]  # fmt: skip
        result = self.check(*arguments)
        self.assertIsNone(RAW_CONTROLS.search(result.err))
        stats = result.out[result.out.index('{"version"'):]
        self.assertIsNone(RAW_CONTROLS.search(stats))
        self.assertEqual(json.loads(stats)["model"], str(folder))
        (folder / "model.safetensors.index.json").write_text("{}")
        warned = self.check(*arguments).err
        self.assertIn("warning: ", warned)
        self.assertIn("a\\x1b[2J\\xc2\\x9b\\xe2\\x80\\xaeb", warned)
        self.assertIsNone(RAW_CONTROLS.search(warned))

    def test_what_was_typed(self):
        result = self.check("generate", "-m", "x\u202e\u009b", "-p", "x", "--top-k", "\u202e1",
                            code=2)  # fmt: skip
        self.assertIsNone(RAW_CONTROLS.search(result.err))
        result = self.check("inspect", "-m", b"x\x9b\xff\x1b", code=1)
        self.assert_one_error(result, "x\\x9b\\xff\\x1b")

    def test_paths_that_are_no_utf8_in_json(self):
        folder = self.copy_model("good")
        odd = bytes(folder) + b"\xff"
        os.rename(folder, odd)
        for command in (["inspect", "--json"], ["generate", "--raw", "-p", "x", "-n", "1",
                                                "--stats-json", "-"]):  # fmt: skip
            result = self.check(*command, "-m", odd, "--device", "cpu")
            self.assertIn("\\ufffd", result.out)
