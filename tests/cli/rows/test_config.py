"""Rows 40 to 52: config.json, and folders without one."""

import json

from rows import model_files
from rows.contract import Row
from support import edit_json


class Folder(Row):
    def test_row_040_no_folder_no_config(self):
        self.refused("inspect", "-m", "absent", words="absent: is not a Hugging Face model folder")
        folder = self.folder_with()
        (folder / "config.json").unlink()
        self.folder_refused(folder, "is not a Hugging Face model folder")

    def test_row_040_not_in_the_cache(self):
        result = self.refused("inspect", "-m", "some/model", hint="hf download some/model",
                              words=["some/model: is not a Hugging Face model folder", "tried",
                                     "models--some--model"])  # fmt: skip
        self.assertIn(str(self.folder / "home"), result.err)

    def test_row_040_a_file(self):
        self.refused("inspect", "-m", self.write("config.json", b"{}"), words="but a file")
        for content, words in [(b"GGUF", "this is a GGUF file, not safetensors"),
                               (b"\x80\x02", "PyTorch pickle is not supported")]:  # fmt: skip
            self.refused("inspect", "-m", self.write("model", content), words=words,
                         hint="safetensors")  # fmt: skip

    def test_row_040_a_folder_of_other_weights(self):
        for name, words in [("model-Q4_K_M.gguf", "has only GGUF weights"),
                            ("pytorch_model.bin", "PyTorch pickle is not supported")]:  # fmt: skip
            folder = self.folder / name.replace(".", "-")
            folder.mkdir()
            (folder / name).write_bytes(b"")
            self.folder_refused(folder, [words, name], hint="safetensors")


class Config(Row):
    def config_refused(self, words, **changes):
        folder = self.folder_with(f"model{len(list(self.folder.iterdir()))}", **changes)
        return self.folder_refused(folder, words, "config.json")

    def text_refused(self, words, change):
        folder = self.folder_with(f"model{len(list(self.folder.iterdir()))}")
        path = folder / "config.json"
        path.write_bytes(change(path.read_bytes()))
        return self.folder_refused(folder, words, "config.json")

    def test_row_041_unknown_architecture(self):
        self.config_refused(["'FrobForCausalLM'", "supported:", "LlamaForCausalLM"],
                            architectures=["FrobForCausalLM"], model_type="frob")  # fmt: skip

    def test_row_042_hidden_size(self):
        for value in ("4096", 4096.7, -1, 0, True, 1e12, 2**20 + 1, 2**64, [64]):
            self.config_refused("hidden_size must be an integer in 1..1048576, got ",
                                hidden_size=value)  # fmt: skip

    def test_row_043_heads(self):
        for changes, words in [
            ({"num_attention_heads": 0}, "num_attention_heads must be an integer in 1..4096"),
            ({"num_key_value_heads": 0}, "num_key_value_heads must be an integer in 1..4096"),
            ({"num_attention_heads": 4, "num_key_value_heads": 3}, "4 is not a multiple of"),
        ]:
            self.config_refused(words, **changes)

    def test_row_044_head_dim(self):
        self.config_refused(["head_dim 63", "even"], head_dim=63)
        # hidden_size / num_attention_heads, which is not what these weights were made for.
        for name, head_dim in (("absent", {}), ("null", {"head_dim": None})):
            folder = self.folder_with(name)
            config = json.loads((folder / "config.json").read_text())
            config.pop("head_dim")
            (folder / "config.json").write_text(json.dumps({**config, **head_dim}))
            self.folder_refused(folder, ["q_proj", "expected [64, 64]"], "model.safetensors")

    def test_row_045_rope(self):
        for rope, words in [
            ({"rope_type": "foo"}, "rope_scaling.rope_type 'foo' is not supported"),
            ({"rope_type": "linear"}, "rope_scaling.factor is missing"),
            ({"rope_type": "llama3", "factor": 8.0}, "rope_scaling.low_freq_factor is missing"),
            ({"rope_type": "longrope", "short_factor": [1.0]}, "short_factor has 1 number"),
        ]:
            self.config_refused(words, rope_scaling=rope)

    def test_row_046_the_same_rope_in_all_forms(self):
        values = {"rope_type": "linear", "factor": 2.0}
        with_theta = {**values, "rope_theta": 10000.0}
        answers = {}
        for name, changes in {
            "none": {},
            "v4": {"rope_scaling": values},
            "v4, older name": {"rope_scaling": {"type": "linear", "factor": 2.0}},
            "v4, both names": {"rope_scaling": {"type": "linear", **values}},
            "v5 flat": {"rope_parameters": with_theta},
            "v5 nested": {"rope_parameters": {"full_attention": with_theta}},
        }.items():
            folder = self.folder_with(name, **changes)
            if "v5" in name:
                edit_json(folder / "config.json", rope_theta=None)
            answers[name] = self.answer(folder, "--ignore-eos", "-n", "48")
        unscaled = answers.pop("none")
        self.assertEqual(len(set(answers.values())), 1, answers)
        self.assertNotIn(unscaled, answers.values())

    def test_row_047_layer_types(self):
        self.config_refused(["layer_types has 3 entries", "num_hidden_layers is 2"],
                            layer_types=["full_attention"] * 3)  # fmt: skip
        self.config_refused(["layer_types has 1 entry,"], layer_types=["full_attention"])
        self.config_refused("layer type 'odd' is not supported", layer_types=["odd"] * 2)

    def test_row_048_activation(self):
        self.config_refused(["hidden_act 'gelu'", "supported: silu"], hidden_act="gelu")

    def test_row_049_sliding_window(self):
        folder = self.folder_with(architectures=["MistralForCausalLM"], model_type="mistral",
                                  num_key_value_heads=1)  # fmt: skip
        windows = []
        for window in ("absent", None, 128):
            config = json.loads((folder / "config.json").read_text())
            if window != "absent":
                config["sliding_window"] = window
            (folder / "config.json").write_text(json.dumps(config))
            shown = json.loads(self.works("inspect", *self.flags(folder), "--json").out)
            windows.append(shown["config"]["sliding_window"])
        self.assertEqual(windows, [4096, 0, 128])

    def test_row_050_not_quite_json(self):
        for words, change in [
            ("duplicate key 'vocab_size'", lambda text: text.replace(b"{", b'{"vocab_size":1,', 1)),
            ("invalid JSON at byte 0", lambda text: b"\xef\xbb\xbf" + text),
            ("invalid JSON at byte 100", lambda text: text[:100]),
            ("file is empty; expected JSON", lambda text: b""),
        ]:
            self.text_refused(words, change)

    def test_row_050_failed_downloads(self):
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
        for name in ("config.json", "tokenizer_config.json", "model.safetensors.index.json"):
            for content, words, hint in [
                (pointer, "this is a Git LFS pointer, not JSON", "git lfs pull"),
                (b"", "file is empty; expected JSON", "download the model again"),
                (b"<!DOCTYPE html>", "starts with '<!DO': looks like a failed download",
                 "download the model again"),
            ]:  # fmt: skip
                folder = self.folder_with(f"model{len(list(self.folder.iterdir()))}")
                model_files.split_into_shards(folder)
                (folder / name).write_bytes(content)
                self.folder_refused(folder, words, name, hint=hint)

    def test_row_051_custom_code(self):
        self.config_refused(["custom code", "not supported"], model_type="frob",
                            architectures=["FrobForCausalLM"],
                            auto_map={"AutoModel": "modeling_frob.Frob"})  # fmt: skip

    def test_row_052_key_that_is_not_understood(self):
        folder = self.folder_with(attn_temperature_tuning=True)
        self.folder_refused(folder, ["not understood, results may be wrong",
                                     "attn_temperature_tuning"],
                            "config.json", hint="--allow-unknown-config")  # fmt: skip
        result = self.works("inspect", *self.flags(folder), "--allow-unknown-config")
        self.assertIn("warning: ", result.err)
