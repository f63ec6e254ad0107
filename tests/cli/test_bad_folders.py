"""Model folders that cannot be loaded: one line that says why, at once."""

import struct

from support import Case, edit_json

CPU_SECONDS = 1.0


def weights(folder):
    return folder / "model.safetensors"


def rewrite(path, content):
    path.write_bytes(content)


def add_safetensors_header(folder, header):
    rewrite(weights(folder), struct.pack("<Q", len(header)) + header)


# What is done to a good folder, and words of the message.
BAD_FOLDERS = {
    "no config": (lambda f: (f / "config.json").unlink(), "config.json"),
    "config is no JSON": (lambda f: rewrite(f / "config.json", b"{"), "config.json"),
    "unknown architecture": (
        lambda f: edit_json(f / "config.json", architectures=["FrobForCausalLM"],
                            model_type="frob"), "FrobFor"),
    "size is a string": (lambda f: edit_json(f / "config.json", hidden_size="64"), "hidden_size"),
    "no heads": (lambda f: edit_json(f / "config.json", num_attention_heads=0),
                 "num_attention_heads"),
    "heads do not divide": (lambda f: edit_json(f / "config.json", num_key_value_heads=3), "3"),
    "unknown key": (lambda f: edit_json(f / "config.json", attn_temperature_tuning=True),
                    "attn_temperature_tuning"),
    "no weights": (lambda f: weights(f).unlink(), "safetensors"),
    "empty weights": (lambda f: rewrite(weights(f), b""), "empty"),
    "Git LFS pointer": (
        lambda f: rewrite(weights(f), b"version https://git-lfs.github.com/spec/v1\noid x\n"),
        "LFS"),
    "failed download": (lambda f: rewrite(weights(f), b"<!DOCTYPE html><html></html>"), "<!DO"),
    "truncated weights": (lambda f: rewrite(weights(f), weights(f).read_bytes()[:-1]), "1 byte"),
    "absurd header": (lambda f: rewrite(weights(f), b"\xff" * 64), "header"),
    "header is no JSON": (lambda f: add_safetensors_header(f, b"{not json}"), "JSON"),
    "no tensors": (lambda f: add_safetensors_header(f, b"{}"), ""),
    "no tokenizer": (lambda f: (f / "tokenizer.model").unlink(), "tokenizer"),
    "tokenizer is noise": (lambda f: rewrite(f / "tokenizer.model", b"\x00\xff" * 99),
                           "tokenizer.model"),
}  # fmt: skip


class BadFolders(Case):
    def test_every_bad_folder(self):
        for name, (damage, words) in BAD_FOLDERS.items():
            with self.subTest(name):
                folder = self.copy_model(name)
                damage(folder)
                arguments = ["-m", folder, "--device", "cpu", "--raw", "-p", "x"]
                result = self.check("generate", *arguments, code=1)
                self.assert_one_error(result, words)
                self.assertLess(result.cpu_seconds, CPU_SECONDS)
                self.assertLessEqual(len(result.err.splitlines()), 3, result.err)

    def test_missing_folder(self):
        result = self.check("generate", "-m", "org/absent", "-p", "x", code=1)
        self.assert_one_error(result, "org/absent")
        self.assertIn("hf download", result.err)

    def test_where_it_was_thrown_only_when_asked(self):
        arguments = ["generate", "-m", "absent", "-p", "x"]
        self.assertNotIn(".cpp:", self.check(*arguments, code=1).err)
        self.assertIn(".cpp:", self.check(*arguments, "-v", code=1).err)

    def test_unknown_template(self):
        flags = [flag for flag in self.model if flag not in ("--chat-template", "llama2")]
        result = self.check("generate", *flags, "-p", "x", code=1)
        self.assert_one_error(result)
        self.assertIn("--raw", result.err)

    def test_weights_that_are_not_finite(self):
        folder = self.copy_model("nan")
        data = bytearray(weights(folder).read_bytes())
        data[-4:] = b"\xff\xff\xff\x7f"  # NaN as float32 and as bfloat16
        rewrite(weights(folder), bytes(data))
        arguments = ["generate", "-m", folder, "--device", "cpu", "--raw", "-p", "x"]
        self.assert_one_error(self.check(*arguments, "--check-weights", code=1), "model.")
