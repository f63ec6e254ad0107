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

    def test_tensors_that_config_json_asks_for(self):
        model = self.copy_model("config_only")
        with_weights = self.check("inspect", *self.model, "--json", "--tensors").out
        stored = {tensor["name"]: tensor["shape"] for tensor in json.loads(with_weights)["tensors"]}
        for path in model.iterdir():
            if path.name != "config.json":
                path.unlink()
        command = ["inspect", "-m", model, "--expected-tensors"]
        lines = self.check(*command, "--json").out.splitlines()
        expected = [json.loads(line) for line in lines]
        self.assertEqual(expected[0]["name"], "model.embed_tokens.weight")
        self.assertEqual({tensor["name"]: tensor["shape"] for tensor in expected}, stored)
        text = self.check(*command).out
        self.assertEqual(len(text.splitlines()), len(expected))
        self.assertIn("model.norm.weight [64]\n", text)
        result = self.check(*command, "--tensors", code=2)
        self.assert_one_error(result, "--tensors excludes --expected-tensors")

    def test_weights_are_not_checked(self):
        result = self.check("inspect", *self.model, "--check-weights", code=2)
        self.assert_one_error(result, "--check-weights")
        self.assertNotIn("--check-weights", self.check("inspect", "--help").out)

    def test_a_folder_with_something_missing(self):
        for file, rows in [("tokenizer.model", ("parameters ", "memory         context")),
                           ("model.safetensors", ("tokenizer  ", "chat template"))]:  # fmt: skip
            folder = self.copy_model(file)
            (folder / file).unlink()
            result = self.check("inspect", "-m", folder, "--device", "cpu", code=1)
            for row in ("layers         2\n", "device  ", *rows):
                self.assertIn(row, result.out)
            self.assert_one_error(result, file, shows_rest=True)
            error = result.error_lines[0].removeprefix("error: ")
            result = self.check("inspect", "-m", folder, "--device", "cpu", "--json", code=1)
            self.assertEqual(json.loads(result.out)["problems"], [error])

    def test_a_missing_shard(self):
        folder = self.copy_model("shards")
        whole = self.check("inspect", "-m", folder, "--json", "--tensors").out
        (folder / "model.safetensors").rename(folder / "model-1.safetensors")
        tensors = json.loads(whole)["tensors"]
        index = {tensor["name"]: "model-1.safetensors" for tensor in tensors}
        index["model.gone.weight"] = "model-2.safetensors"
        text = json.dumps({"weight_map": index})
        (folder / "model.safetensors.index.json").write_text(text)
        result = self.check("inspect", "-m", folder, "--tensors", code=1)
        self.assertIn(", without the files that are missing\n", result.out)
        self.assertIn("model.norm.weight", result.out)
        self.assertRegex(result.out, "problem .*'model-2.safetensors' is missing; 1 of 2 files")
        result = self.check("inspect", "-m", folder, "--json", "--tensors", code=1)
        self.assertEqual(json.loads(result.out)["tensors"], tensors)

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

    def test_all_values_of_a_list_are_timed(self):
        for lengths in (["8,16"], ["8", "16"], ["8", "--prompt-lengths", "16"]):
            with self.subTest(lengths=lengths):
                result = self.check("bench", *self.model, "--prompt-lengths", *lengths,
                                    "--decode-lengths", "4", "--repetitions", "1",
                                    "--json", "-", "-q")  # fmt: skip
                rows = json.loads(result.out)["results"]
                self.assertEqual([row["prompt_length"] for row in rows], [8, 16])

    def test_one_repetition_has_no_spread(self):
        path = self.folder / "report.json"
        flags = [*self.FLAGS, "--repetitions", "1", "--json", path]
        self.assertNotIn("±", self.check("bench", *self.model, *flags).out)
        for row in json.loads(path.read_text())["results"]:
            self.assertIsNone(row["decode_tokens_per_second"]["spread"])
        result = self.check("bench", *self.model, *self.FLAGS, "--compare", path, code=1)
        self.assert_one_error(result, "--repetitions 2 or more")

    def test_where_the_load_went(self):
        path = self.folder / "report.json"
        text = self.check("bench", *self.model, *self.FLAGS, "--json", path).out
        self.assertRegex(text, r"load +[\d.]+ s = open .* \+ weights .* GB/s\) \+ warm-up")
        self.assertRegex(text, r"first token +[\d.]+ s = start .* \+ load .* \+ prompt")
        report = json.loads(path.read_text())
        self.assertIn("weights_seconds", report["load_phases"])
        self.assertGreater(report["first_token_seconds"], report["load_seconds"])

    def test_lengths_that_do_not_fit(self):
        result = self.check("bench", *self.model, "--prompt-lengths", "250", code=2)
        self.assert_one_error(result, "250")

    def test_a_context_that_is_too_short_for_every_case(self):
        result = self.check("bench", *self.model, "-c", "20", code=2)
        self.assertIn("error: the context of 20 tokens holds none of the cases", result.err)
        self.assertIn("hint: --prompt-lengths and --decode-lengths choose shorter ones", result.err)

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


class Compare(Case):
    FLAGS = ["--prompt-lengths", "16,32", "--decode-lengths", "8", "--repetitions", "2"]

    def setUp(self):
        super().setUp()
        self.path = self.folder / "before.json"

    def measure(self):
        self.check("bench", *self.model, *self.FLAGS, "--json", self.path)
        return json.loads(self.path.read_text())

    def compare(self, *arguments, **options):
        return self.check("bench", *self.model, *self.FLAGS, "--compare", self.path, *arguments,
                          **options)  # fmt: skip

    def assert_refused(self, text, report):
        self.path.write_text(json.dumps(report))
        self.assert_one_error(self.compare(code=1), text)

    def scale(self, report, factor):
        for row in report["results"]:
            for key in ("prefill_tokens_per_second", "decode_tokens_per_second"):
                row[key]["median"] *= factor
        self.path.write_text(json.dumps(report))

    def test_verdicts(self):
        report = self.measure()
        for factor, verdict in [(1e-6, "faster"), (1e12, "slower")]:
            self.scale(report, factor)
            table = self.compare().out.split("change")[1]
            self.assertEqual(table.count(verdict), 4, table)
        for row in report["results"]:
            for key in ("prefill_tokens_per_second", "decode_tokens_per_second"):
                row[key]["spread"] = 1e12  # more than any change
        self.path.write_text(json.dumps(report))
        self.assertEqual(self.compare().out.count("same"), 4)

    def test_the_file_may_be_written_again(self):
        self.measure()
        self.assertIn("verdict", self.compare("--json", self.path).out)
        self.assertEqual(len(json.loads(self.path.read_text())["results"]), 2)

    def test_what_is_not_the_same_is_named(self):
        report = self.measure()
        other_case = json.loads(json.dumps(report))
        other_case["results"][1]["prompt_length"] = 48
        self.assert_refused("did not measure batch 1, prompt 32, decode 8", other_case)
        more_cases = json.loads(json.dumps(report))
        more_cases["results"].append({**report["results"][0], "decode_length": 64})
        self.assert_refused("decode 64, which this run does not", more_cases)
        self.assert_refused("measured the model other", {**report, "model": "a/other/"})
        self.assert_refused("measured the device abacus", {**report, "device": "abacus"})
        self.assert_refused("float16, this run has float32", {**report, "dtype": "float16"})
        self.assert_refused("weights of 7 bytes", {**report, "weights_bytes": 7})

    def test_files_that_are_no_report(self):
        report = self.measure()
        row = report["results"][0]
        for text, content in [
            ("invalid JSON at byte", "no JSON"),
            ("it is not an object", "[1]"),
            ("model is not there", "{}"),
            ("device is not a text", json.dumps({**report, "device": 5})),
            ("weights_bytes is not a whole number", json.dumps({**report, "weights_bytes": -1})),
            ("results is not a list", json.dumps({**report, "results": []})),
            ("results[0].batch_size is not there", json.dumps({**report, "results": [{}]})),
            (
                "decode_tokens_per_second.median is not above 0",
                json.dumps({
                    **report,
                    "results": [{**row, "decode_tokens_per_second": {"median": 0, "spread": 0}}],
                }),
            ),
            ("--repetitions 2 or more", json.dumps({**report, "repetitions": 1})),
        ]:  # fmt: skip
            with self.subTest(text=text):
                self.path.write_text(content)
                self.assert_one_error(self.compare(code=1), text)
        self.path.write_bytes(b"\xe9")
        result = self.compare(code=1)
        self.assert_one_error(result, "not UTF-8")
        self.assertNotIn("--replace-invalid", result.err)
        self.path.unlink()
        self.assert_one_error(self.compare(code=1), "No such file")

    def test_command_lines_that_mean_nothing(self):
        flags = ["bench", *self.model, "--compare", self.path]
        for arguments, text in [
            (["--repetitions", "1"], "--repetitions 2"),
            (["--json", "-"], "--json"),
        ]:
            self.assert_one_error(self.check(*flags, *arguments, code=2), text)
