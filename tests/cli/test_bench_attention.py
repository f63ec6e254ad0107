"""tessera bench attention."""

import json
import re

from support import Case

HEADS = ["--device", "cpu", "--num-heads", "4", "--num-kv-heads", "2", "--head-dim", "32"]


class BenchAttention(Case):
    def check_json(self, *arguments):
        result = self.check("bench", "attention", *HEADS, *arguments, "--json", "-", "-q")
        return json.loads(result.out)

    def test_help_teaches(self):
        result = self.check("bench", "attention", "--help")
        for word in ("Examples:", "--lengths", "--decode-cases", "standard attention"):
            self.assertIn(word, result.out)

    def test_tables(self):
        result = self.check("bench", "attention", *HEADS, "--lengths", "48,96",
                            "--decode-cases", "2x200", "--repetitions", "2")  # fmt: skip
        for word in ("prefill", "decode", "TFLOP/s", "GB/s", "of matmul", "of memory", "ratio"):
            self.assertIn(word, result.out)
        self.assertNotIn("nan", result.out)

    def test_json(self):
        report = self.check_json("--lengths", "50", "--decode-cases", "3x1k", "--repetitions", "3")
        self.assertGreater(report["matmul_flops_per_second"], 0)
        self.assertGreater(report["read_bytes_per_second"], 0)
        self.assertEqual(report["num_heads"], 4)
        prefill, decode = report["results"]
        self.assertEqual((prefill["kind"], prefill["batch_size"]), ("prefill", 1024 // 50))
        self.assertEqual(prefill["flops"], 4 * (1024 // 50) * 50 * 50 / 2 * 4 * 32)
        self.assertEqual((decode["kind"], decode["batch_size"]), ("decode", 3))
        self.assertEqual(decode["context_length"], 1024)
        self.assertEqual(decode["kv_bytes"], 2 * 3 * 1024 * 2 * 32 * 4)
        for row in report["results"]:
            ours = row["tessera"]
            self.assertGreater(ours["seconds"]["median"], 0)
            self.assertGreaterEqual(ours["seconds"]["spread"], 0)
            self.assertGreater(ours["flops_per_second"], 0)
            self.assertLess(ours["largest_error"], 1e-4)
            self.assertIn("scratch_bytes", ours)
            self.assertIn("problem", row["standard"])

    def test_one_repetition_has_no_spread(self):
        flags = ["--lengths", "16", "--repetitions", "1"]
        seconds = self.check_json(*flags)["results"][0]["tessera"]["seconds"]
        self.assertIsNone(seconds["spread"])
        self.assertEqual(seconds["all"], [seconds["median"]])
        self.assertNotIn("±", self.check("bench", "attention", *HEADS, *flags).out)

    def test_lists_may_be_given_in_pieces(self):
        report = self.check_json("--lengths", "8", "16", "--decode-cases", "1x8",
                                 "--decode-cases", "2x8", "3x8", "--repetitions", "0")  # fmt: skip
        cases = [(row["kind"], row["context_length"]) for row in report["results"]]
        self.assertEqual(cases, [("prefill", 8), ("prefill", 16)] + [("decode", 8)] * 3)
        batch_sizes = [row["batch_size"] for row in report["results"][2:]]
        self.assertEqual(batch_sizes, [1, 2, 3])

    def test_what_may_be_refused_is_timed_first(self):
        result = self.check("bench", "attention", *HEADS, "--repetitions", "0", "--json", "-",
                            "--lengths", "8,32", "--decode-cases", "1x16,1x64")  # fmt: skip
        timed = [int(length) for length in re.findall(r"context (\d+)", result.err)]
        self.assertEqual(timed, [64, 32, 16, 8])
        reported = [row["context_length"] for row in json.loads(result.out)["results"]]
        self.assertEqual(reported, [8, 32, 16, 64])
        # More than any machine has.
        flags = ["--lengths", "8", "--decode-cases", "16384x16384k", "--repetitions", "0"]
        refused = self.check("bench", "attention", *HEADS, *flags, code=1)
        self.assertNotIn("context 8\n", refused.err)

    def test_a_profiler_gets_one_launch_and_no_times(self):
        report = self.check_json("--lengths", "64", "--repetitions", "0")
        self.assertEqual(report["matmul_flops_per_second"], 0)
        ours = report["results"][0]["tessera"]
        self.assertNotIn("seconds", ours)
        self.assertIn("largest_error", ours)

    def test_variants_are_checked_and_timed(self):
        for flags in (["--contiguous"], ["--page-size", "16"], ["--sliding-window", "20"],
                      ["--kv-dtype", "fp8"], ["--kv-dtype", "fp8", "--contiguous"]):  # fmt: skip
            with self.subTest(flags=flags):
                report = self.check_json("--lengths", "70", "--decode-cases", "2x70",
                                         "--repetitions", "1", *flags)  # fmt: skip
                self.assertEqual(len(report["results"]), 2)

    def test_fp8_pages_are_said_and_counted(self):
        cases = ["--lengths", "50", "--decode-cases", "3x1k", "--repetitions", "1"]
        report = self.check_json(*cases, "--kv-dtype", "fp8")
        self.assertEqual((report["dtype"], report["kv_dtype"]), ("float32", "float8_e4m3"))
        decode = report["results"][1]
        self.assertEqual(decode["kv_bytes"], 2 * 3 * 1024 * 2 * 32)
        for row in report["results"]:
            self.assertLess(row["tessera"]["largest_error"], 1e-4)
        self.assertEqual(self.check_json(*cases, "--kv-dtype", "auto")["kv_dtype"], "float32")
        for flags, layout in (([], "float8_e4m3, 64 tokens each, in random order"),
                              (["--contiguous"], "float8_e4m3, one per sequence")):  # fmt: skip
            result = self.check("bench", "attention", *HEADS, *cases, "--kv-dtype", "fp8", *flags)
            self.assertIn(f"pages        {layout}", result.out)

    def test_bad_usage(self):
        for arguments, text in [
            (["--lengths", "0"], "--lengths"),
            (["--lengths", "x"], "--lengths"),
            (["--decode-cases", "4"], "like 16x32k"),
            (["--decode-cases", "0x16"], "like 16x32k"),
            (["--decode-cases", "4x"], "like 16x32k"),
            (["--num-kv-heads", "3"], "not a multiple"),
            (["--sliding-window", "8", "--no-causal"], "--no-causal"),
            (["--softcap", "-1"], "--softcap"),
            (["--repetitions", "-1"], "--repetitions"),
            (["--kv-dtype", "int4"], "--kv-dtype must be auto or fp8, got 'int4'"),
            (["--bogus"], "--bogus"),
        ]:
            with self.subTest(arguments=arguments):
                result = self.check("bench", "attention", *HEADS, *arguments, code=2)
                self.assert_one_error(result, text)
                self.assertIn("see 'tessera bench attention --help'", result.err)

    def test_flags_of_bench_are_not_its_own(self):
        flags = ["--device", "cpu", "--prompt-lengths", "8", "--device", "cpu", "-m", "absent"]
        result = self.check("bench", *flags, "attention", "--lengths", "8", code=2)
        self.assert_one_error(result, "got --prompt-lengths, --model, --device before it")
        self.assertIn("see 'tessera bench attention --help'", result.err)

    def test_what_all_commands_take_may_stand_in_front_of_it(self):
        self.environment["TESSERA_MODEL"] = "absent"  # of bench, but not a flag
        result = self.check("bench", "-q", "attention", *HEADS, "--lengths", "8",
                            "--repetitions", "0")  # fmt: skip
        self.assertEqual(result.err, "")

    def test_bench_without_it_still_wants_a_model(self):
        result = self.check("bench", "--repetitions", "1", code=2)
        self.assert_one_error(result, "no model")
