"""--kv-dtype: what it means for memory, and where it is said."""

import json

from support import Case


class KvDtype(Case):
    def memory(self, *arguments):
        out = self.check("inspect", *self.demo, "-c", "8k", "--json", *arguments).out
        return json.loads(out)["memory"]

    def test_a_byte_for_an_element(self):
        computed = self.memory()  # float32 on a CPU
        fp8 = self.memory("--kv-dtype", "fp8")
        self.assertEqual(computed["kv_dtype"], "auto")
        self.assertEqual(fp8["kv_dtype"], "fp8")
        self.assertEqual(fp8["kv_bytes"] * 4, computed["kv_bytes"])
        self.assertEqual(fp8["kv_bytes_per_token"] * 4, computed["kv_bytes_per_token"])

    def test_memory_is_what_inspect_says(self):
        path = self.folder / "stats.json"
        result = self.check("generate", *self.demo, "-c", "8k", "--kv-dtype", "fp8", "-p", "hello",
                            "-n", "2", "-v", "--stats-json", path)  # fmt: skip
        self.assertRegex(result.err, r"KV cache: float8_e4m3, scales from a calibration, between ")
        stats = json.loads(path.read_text())
        self.assertEqual(stats["kv_dtype"], "float8_e4m3")
        total = self.memory("--kv-dtype", "fp8")["total_bytes"]
        self.assertLess(abs(stats["allocated_bytes"] - total), 0.02 * total)

    def test_other_types_are_refused(self):
        result = self.run_tessera("generate", *self.model, "-p", "x", "--kv-dtype", "int4")
        self.assertEqual(result.code, 2)
        self.assertIn("--kv-dtype must be auto or fp8, got 'int4'", result.err)

    def test_attention_in_fp8_needs_pages_of_it_and_a_gpu(self):
        attention = [*self.model, "-p", "x", "--attention-dtype"]
        result = self.run_tessera("generate", *attention, "int4", "--kv-dtype", "fp8")
        self.assertEqual(result.code, 2)
        self.assertIn("--attention-dtype must be auto or fp8, got 'int4'", result.err)
        result = self.run_tessera("generate", *attention, "fp8")
        self.assertEqual(result.code, 2)
        self.assertIn("--attention-dtype requires --kv-dtype", result.err)
        result = self.run_tessera("generate", *attention, "fp8", "--kv-dtype", "auto")
        self.assertEqual(result.code, 1)
        self.assertIn("attention in float8_e4m3 needs a KV cache of that type", result.err)
        self.assertIn("hint: --kv-dtype fp8 makes one", result.err)
        result = self.run_tessera("generate", *attention, "fp8", "--kv-dtype", "fp8", "--device",
                                  "cpu")  # fmt: skip
        self.assertEqual(result.code, 1)
        self.assertIn("needs a GPU of compute capability 9.0, this runs on the CPU", result.err)
        self.assertIn("hint: leave out --attention-dtype", result.err)
        result = self.run_tessera("generate", *attention, "fp8", "--kv-dtype", "fp8",
                                  "--batch-invariant")  # fmt: skip
        self.assertEqual(result.code, 1)
        self.assertIn("so it is not batch-invariant", result.err)
        self.assertIn("hint: leave out --attention-dtype or --batch-invariant", result.err)
