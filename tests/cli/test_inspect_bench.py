"""tessera inspect and tessera bench."""

import json
import struct

from support import Case


class Inspect(Case):
    def test_text(self):
        result = self.check("inspect", *self.model, "-c", "128")
        for word in ("LlamaForCausalLM", "layers", "parameters", "tokenizer", "context 128"):
            self.assertIn(word, result.out)

    def test_json(self):
        result = self.check("inspect", *self.model, "--json", "--tensors")
        model = json.loads(result.out)
        self.assertEqual(model["config"]["num_layers"], 2)
        self.assertEqual(len(model["tensors"]), model["num_tensors"])
        elements = 0
        for tensor in model["tensors"]:
            size = 1
            for dimension in tensor["shape"]:
                size *= dimension
            elements += size
        self.assertEqual(elements, model["num_parameters"])

    def test_tensors(self):
        self.assertIn("model.norm.weight", self.check("inspect", *self.model, "--tensors").out)


class Bench(Case):
    FLAGS = ["--prompt-lengths", "16,32", "--decode-lengths", "8", "--repetitions", "2"]

    def test_table(self):
        result = self.check("bench", *self.model, *self.FLAGS)
        for word in ("prefill tok/s", "decode tok/s", "GB/s", "of memory"):
            self.assertIn(word, result.out)

    def test_json(self):
        result = self.check("bench", *self.model, *self.FLAGS, "--batch-sizes", "1,2",
                            "--json", "-", "-q")  # fmt: skip
        report = json.loads(result.out)
        self.assertEqual(len(report["results"]), 4)
        self.assertGreater(report["read_bytes_per_second"], 0)
        for row in report["results"]:
            for key in ("prefill_tokens_per_second", "decode_tokens_per_second"):
                self.assertGreater(row[key]["median"], 0)
            self.assertGreater(row["bytes_per_step"], report["weight_bytes_per_token"])

    def test_lengths_that_do_not_fit(self):
        result = self.check("bench", *self.model, "--prompt-lengths", "250", code=1)
        self.assert_one_error(result, "250")

    def test_zero_lengths(self):
        result = self.check("bench", *self.model, "--prompt-lengths", "0", code=2)
        self.assert_one_error(result, "--prompt-lengths")

    def test_a_model_of_zeros_is_refused(self):
        folder = self.copy_model("zeros")
        path = folder / "model.safetensors"
        data = path.read_bytes()
        header_end = 8 + struct.unpack("<Q", data[:8])[0]
        path.write_bytes(data[:header_end] + bytes(len(data) - header_end))
        result = self.check("bench", "-m", folder, "--device", "cpu", *self.FLAGS, code=1)
        self.assert_one_error(result, "logits are all equal")
