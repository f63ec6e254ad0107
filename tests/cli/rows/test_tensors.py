"""Rows 30 to 39: tensors that a model lacks or has too many of, and indexes of shards."""

from rows.contract import Row
from rows.model_files import Safetensors, save_index, split_into_shards


class Tensors(Row):
    def changed(self, change, name="model"):
        """The tiny model after `change` was made to its tensors."""
        folder = self.folder_with(name)
        weights = Safetensors(folder / "model.safetensors")
        change(weights.tensors)
        weights.save()
        return folder

    def test_row_030_missing(self):
        name = "model.layers.1.mlp.up_proj.weight"
        folder = self.changed(lambda tensors: tensors.pop(name))
        self.folder_refused(folder, ["1 tensor is missing", name], "model.safetensors")

    def test_row_030_many_missing(self):
        def remove_eight(tensors):
            for name in list(tensors)[2:10]:
                tensors.pop(name)

        folder = self.changed(remove_eight)
        result = self.folder_refused(folder, "8 tensors are missing", "model.safetensors")
        self.assertEqual(result.err.count(".weight"), 5)

    def test_row_031_unexpected(self):
        tensor = ["F32", [1], b"\0" * 4]
        folder = self.changed(
            lambda tensors: tensors.update(
                {"extra.a": tensor, "extra.b": tensor,
                 "model.layers.0.self_attn.rotary_emb.inv_freq": tensor})
        )  # fmt: skip
        words = "2 tensors are not used by this model, results may be wrong: extra.a, extra.b"
        result = self.folder_refused(folder, words, "model.safetensors",
                                     hint="--allow-unknown-weights")  # fmt: skip
        self.assertNotIn("inv_freq", result.err)
        flags = [*self.flags(folder), "--allow-unknown-weights"]
        for arguments in (["inspect"], ["generate", "--raw", "-p", "x", "-n", "1"]):
            error = self.works(*arguments, *flags).err
            self.assertIn("warning: ", error)
            self.assertIn(words, error)

    def test_row_031_norms_of_queries_and_keys(self):
        """As Qwen 3 has them: a block that computes without them answers wrongly."""
        def add_norms(tensors):
            for name in ("q", "k"):
                tensor = f"model.layers.0.self_attn.{name}_norm.weight"
                tensors[tensor] = ["F32", [64], b"\0" * 256]

        folder = self.changed(add_norms)
        words = "layers.0.self_attn.k_norm.weight, model.layers.0.self_attn.q_norm.weight"
        self.folder_refused(folder, words, "model.safetensors", hint="--allow-unknown-weights")
        self.works("generate", *self.flags(folder), "--raw", "-p", "x", "-n", "1",
                   "--allow-unknown-weights")  # fmt: skip

    def test_row_032_shape(self):
        folder = self.folder_with(num_attention_heads=4, num_key_value_heads=1)
        self.folder_refused(folder, ["q_proj", "[128, 64]", "expected [256, 64]",
                                     "num_attention_heads * head_dim"],
                            "model.safetensors")  # fmt: skip

    def test_row_033_no_output_layer(self):
        folder = self.folder_with(tie_word_embeddings=False)
        self.folder_refused(folder, ["lm_head.weight", "tie_word_embeddings is false"],
                            "model.safetensors")  # fmt: skip

    def test_row_034_absurd_layer_numbers(self):
        tensor = ["F32", [1], b"\0" * 4]
        for layer in ("99999999999", "-1", "2", "01", "18446744073709551616"):
            name = f"model.layers.{layer}.mlp.up_proj.weight"
            folder = self.changed(lambda tensors: tensors.update({name: tensor}), f"layer{layer}")
            self.folder_refused(folder, ["1 tensor is not used by this model", name],
                                "model.safetensors")  # fmt: skip


class Index(Row):
    def setUp(self):
        super().setUp()
        self.model_folder = self.folder_with()
        self.index = split_into_shards(self.model_folder)
        self.shards = sorted(set(self.index["weight_map"].values()))

    def index_refused(self, words, **options):
        save_index(self.model_folder, self.index)
        return self.folder_refused(self.model_folder, words, "model.safetensors.index.json",
                                   **options)  # fmt: skip

    def test_the_index_of_these_tests_is_good(self):
        self.works("inspect", *self.flags(self.model_folder))

    def test_row_035_shard_missing(self):
        (self.model_folder / self.shards[1]).unlink()
        lost = sum(file == self.shards[1] for file in self.index["weight_map"].values())
        self.index_refused([f"'{self.shards[1]}' is missing", "1 of 2 files",
                            f"{lost} of {len(self.index['weight_map'])} tensors"])  # fmt: skip

    def test_row_036_unsafe_names(self):
        tensor = next(iter(self.index["weight_map"]))
        for name in ("../../etc/passwd", "/etc/passwd", "a/b.safetensors", "a\0b.safetensors",
                     "..", ".safetensors", "", "-o.safetensors"):  # fmt: skip
            self.index["weight_map"][tensor] = name
            self.index_refused("unsafe file name in index: '" + name.replace("\0", "\\x00"))

    def test_row_037_wrong_shard(self):
        tensor = next(iter(self.index["weight_map"]))
        right = self.index["weight_map"][tensor]
        wrong = next(shard for shard in self.shards if shard != right)
        self.index["weight_map"][tensor] = wrong
        self.index_refused([f"'{tensor}' is not in {wrong}", f"but in {right}"])

    def test_row_037_in_two_shards(self):
        tensor = next(iter(self.index["weight_map"]))
        right = self.index["weight_map"][tensor]
        wrong = next(shard for shard in self.shards if shard != right)
        second = Safetensors(self.model_folder / wrong)
        second.tensors[tensor] = Safetensors(self.model_folder / right).tensors[tensor]
        second.save()
        self.folder_refused(self.model_folder, [f"'{tensor}' is also in", *self.shards])

    def test_row_038_no_index(self):
        for text, words in [
            ("{", "invalid JSON"),
            ("[]", "must be a JSON object"),
            ('{"weight_map": []}', "weight_map must be an object"),
            ('{"weight_map": {}}', "weight_map is empty"),
            ('{"metadata": {}}', "no weight_map"),
        ]:
            save_index(self.model_folder, text)
            self.folder_refused(self.model_folder, words, "model.safetensors.index.json")

    def test_row_038_too_many_shards(self):
        self.index["weight_map"] = {f"t{i}": f"s{i}.safetensors" for i in range(2000)}
        self.index_refused("2000 files")

    def test_row_039_broken_symlinks(self):
        shard = self.model_folder / self.shards[0]
        shard.unlink()
        shard.symlink_to("../../blobs/0123")
        self.folder_refused(self.model_folder, "broken symlink to '../../blobs/0123'",
                            self.shards[0], hint="download the model again")  # fmt: skip
        config = self.model_folder / "config.json"
        config.unlink()
        config.symlink_to("config.json")
        self.refused("inspect", *self.flags(self.model_folder), words="config.json")
