"""Numbers on the command line: every flag of every subcommand says what it takes, and exits 2."""

import json
import re

from support import Case, edit_json, raw

NOISE = ["abc", "", "9" * 400]
# Tried with one flag of each kind: all flags of a kind are read by the same function.
MORE_NOISE = {
    "--top-k": ["1.5", "0x10", "1e3", " 1", "1 ", "-" + "9" * 30, "nan", "1k"],
    "--top-p": ["0x1p-3", " 1", "1 ", "0,5", "1e999", "-1e999", "nan", "inf", "-inf"],
    "--seed": ["1.0", "-0"],
    "--ctx-size": ["1m", "1.5k", "kk", " 1k"],
}

# flag -> (what it must be, values that it refuses besides the noise)
SAMPLING = {
    "--temp": ("0 or a number in 0.01..100", ["-1", "0.001", "100.0000001"]),
    "--temperature": ("0 or a number in 0.01..100", ["-1"]),
    "--top-k": ("an integer in -1..1073741824", ["-2", "1073741825"]),
    "--top-p": ("a number above 0 and at most 1", ["-1", "0", "1.0000001"]),
    "--min-p": ("a number in 0..1", ["-0.1", "1.5"]),
    "--repeat-penalty": ("a number in 0.01..100", ["-1", "0", "101"]),
    "--repetition-penalty": ("a number in 0.01..100", ["-1"]),
    "--presence-penalty": ("a number in -2..2", ["-3", "3"]),
    "--frequency-penalty": ("a number in -2..2", ["-3", "3"]),
    "--repeat-last-n": ("an integer in 0..1073741824", ["-1", "1073741825"]),
    "--seed": ("-1 or an integer in 0..18446744073709551615", ["-2", "18446744073709551616"]),
    "-s": ("-1 or an integer in 0..18446744073709551615", ["-2", "-1.0"]),
    "--max-tokens": ("an integer in 0..1073741824", ["-1", "1073741825"]),
    "-n": ("an integer in 0..1073741824", ["-1"]),
    "--n-predict": ("an integer in 0..1073741824", ["-1"]),
    "--min-tokens": ("an integer in 0..1073741824", ["-1"]),
}
THREADS = {"--threads": ("an integer in 0..1024", ["-3", "1025"])}
ENGINE = {
    **THREADS,
    "--ctx-size": ("an integer in 0..1073741824", ["-1", "1073741825", "-1k", "k", "9999999999k"]),
    "-c": ("an integer in 0..1073741824", ["-1", "99999999999999999999"]),
    "--max-model-len": ("an integer in 0..1073741824", ["-1"]),
    "--page-size": ("16, 32, 64, 128 or 256", ["-16", "0", "8", "63", "512"]),
    "--prefill-chunk": ("an integer in 0..65536", ["-1", "65537"]),
    "--kv-pages": ("an integer in 0..1073741824", ["-1", "1073741825"]),
}
BATCH = {"--max-sequences": ("an integer in 0..4096", ["-1", "4097"])}
SUMMARIZE = {
    "--words": ("an integer in 1..1000000", ["0", "1000001"]),
    "--chunk-tokens": ("an integer in 64..1073741824", ["0", "63"]),
    "--overlap": ("an integer in 0..1073741824", ["-1"]),
}
BENCH = {
    "--prompt-lengths": ("an integer in 1..1073741824", ["-1", "0", "512,0", "1,,2", ","]),
    "--context": ("an integer in 1..1073741824", ["0"]),
    "--decode-lengths": ("an integer in 1..1073741824", ["-1", "0"]),
    "--batch-sizes": ("an integer in 1..4096", ["-1", "0", "1,4097"]),
    "--repetitions": ("an integer in 1..1000", ["-1", "0", "1001"]),
}
BENCH_ATTENTION = {
    **THREADS,
    "--lengths": ("an integer in 1..16777216", ["-1", "0", "1k,0", "17m"]),
    "--num-heads": ("an integer in 1..1024", ["-1", "0", "1025"]),
    "--num-kv-heads": ("an integer in 1..1024", ["-1", "0"]),
    "--head-dim": ("an integer in 1..1024", ["-1", "0", "1025"]),
    "--sliding-window": ("an integer in 0..16777216", ["-1", "16777217"]),
    "--softcap": ("a number in 0..1e+06", ["-1", "1000001"]),
    "--page-size": ("an integer in 1..16777216", ["-1", "0"]),
    "--repetitions": ("an integer in 0..1000", ["-1", "1001"]),
}
DECODE_CASES = {"--decode-cases": ("", ["16", "x", "0x1k", "1x0", "-1x4k", "1xk", "", "1x4k,16"])}


class Numbers(Case):
    def assert_refused(self, command, flag, value, allowed, *arguments):
        with self.subTest(command=command, flag=flag, value=value):
            result = self.check(*command, *arguments, flag, value, code=2)
            self.assert_one_error(result)
            self.assertLessEqual(len(result.err.splitlines()), 2)
            line = result.error_lines[0]
            self.assertIn(f"{ALIASES.get(flag, flag)} must be {allowed}", line)
            # Of a list, the element that is wrong is quoted.
            quoted = [f", got '{part}'" for part in (value, *value.split(","))]
            self.assertTrue(any(text in line for text in quoted), line)
            self.assertIn(f"see 'tessera {' '.join(command)} --help'", result.err)

    def assert_all_refused(self, command, table, *arguments):
        for flag, (allowed, values) in table.items():
            for value in values + NOISE + MORE_NOISE.get(flag, []):
                self.assert_refused(command, flag, value, allowed, *arguments)

    def assert_table_is_complete(self, command, *tables):
        known = {flag for table in tables for flag in table}
        for line in self.check(*command, "--help").out.splitlines():
            match = re.match(r"  (-\S+) N\b", line) or re.match(r"  (-\S+) (N|BxN),\.\.\.", line)
            if match:
                for flag in match[1].split(","):
                    self.assertIn(flag, known)

    def test_generate(self):
        arguments = ("-m", "absent", "-p", "x")
        self.assert_all_refused(("generate",), SAMPLING | ENGINE, *arguments)
        self.assert_table_is_complete(("generate",), SAMPLING, ENGINE)

    def test_other_commands(self):
        """These share the flags' definitions with generate: one value of each."""
        for command, tables, arguments in [
            ("chat", SAMPLING | ENGINE, ["-m", "absent"]),
            ("summarize", SAMPLING | ENGINE | SUMMARIZE, ["-m", "absent", "file"]),
            ("batch", SAMPLING | ENGINE | BATCH, ["-m", "absent", "-i", "in", "-o", "out"]),
            ("inspect", ENGINE, ["-m", "absent"]),
            ("bench", ENGINE, ["-m", "absent"]),
        ]:
            for flag, (allowed, values) in tables.items():
                self.assert_refused((command,), flag, values[0], allowed, *arguments)
            self.assert_table_is_complete((command,), tables, BENCH if command == "bench" else {})

    def test_bench(self):
        self.assert_all_refused(("bench",), BENCH, "-m", "absent")

    def test_bench_attention(self):
        self.assert_all_refused(("bench", "attention"), BENCH_ATTENTION)
        for value in DECODE_CASES["--decode-cases"][1]:
            self.assert_refused(("bench", "attention"), "--decode-cases", value, "")
        self.assert_table_is_complete(("bench", "attention"), BENCH_ATTENTION, DECODE_CASES)

    def test_good_numbers_are_taken(self):
        model = raw(self.long_model())
        for arguments in (["--temp", "0"], ["--temp=.5"], ["--temp", "1e-1"], ["--top-p", "1e-9"],
                          ["-s", "18446744073709551615"], ["-c", "1K"], ["--page-size", "256"],
                          ["--presence-penalty", "-2"], ["--threads", "1"],
                          ["--prefill-chunk", "2k"], ["--repeat-last-n", "1k"], ["--temp", "abc", "--temp", "1"]):  # fmt: skip
            self.check("generate", *model, "-p", "x", "-n", "1", *arguments)


# How errors name a flag that was given by another name.
ALIASES = {
    "--seed": "-s/--seed",
    "--max-tokens": "-n/--max-tokens",
    "--ctx-size": "-c/--ctx-size",
    "--temperature": "--temp",
    "--repetition-penalty": "--repeat-penalty",
    "--n-predict": "-n/--max-tokens",
    "-n": "-n/--max-tokens",
    "-s": "-s/--seed",
    "-c": "-c/--ctx-size",
    "--max-model-len": "-c/--ctx-size",
    "--context": "--prompt-lengths",
}


class Kibitokens(Case):
    """Every count of tokens that people type may end with k."""

    NUMBERS = {"min_tokens": "0k", "repeat_last_n": "2K"}

    def assert_drawn_with_them(self):
        sampling = json.loads((self.folder / "stats").read_text().splitlines()[0])["sampling"]
        self.assertEqual([sampling[name] for name in self.NUMBERS], [0, 2048])

    def test_flags(self):
        command = ["generate", *self.model, "-p", "x"]
        flags = [f"--{name.replace('_', '-')}={text}" for name, text in self.NUMBERS.items()]
        self.check(*command, *flags, "-n", "1", "--stats-json", "stats")
        self.assert_drawn_with_them()
        self.assert_one_error(self.check(*command, "-n", "8k", code=1), "reserved 8192 ")

    def test_set(self):
        lines = [f"/set {name} {text}\n" for name, text in self.NUMBERS.items()]
        chat = ["chat", *self.model, "-n", "1"]
        self.check(*chat, "--stats-json", "stats", stdin="".join(lines) + "x\n")
        self.assert_drawn_with_them()
        result = self.check(*chat, stdin="/set max_tokens 8k\nx\n", code=3)
        self.assert_one_error(result, "its answer 8192,")

    def test_overlap(self):
        path = self.write("document.txt", "One sentence. " * 400)
        self.check("summarize", *self.model, path, "--chunk-tokens", "64", "--overlap", "0k", "-n", "8")


class ContextOfTheModel(Case):
    """What only config.json can tell is still wrong usage, found before any weights are read."""

    def test_longer_than_the_model(self):
        folder = self.copy_model("16k")
        edit_json(folder / "config.json", max_position_embeddings=16384)
        (folder / "model.safetensors").unlink()
        for command in (["generate", "--raw", "-p", "x"], ["inspect"], ["chat"], ["bench"]):
            result = self.check(*command, "-m", folder, "--device", "cpu", "-c", "32k", code=2)
            self.assert_one_error(
                result, "-c/--ctx-size must be an integer in 0..16384, got '32k'"
            )
            self.assertIn(f"hint: {folder} holds at most 16384 tokens", result.err)
            self.assertIn("--help'", result.err)

    def test_lengths_to_measure(self):
        result = self.check("bench", *self.model, "--prompt-lengths", "300", code=2)
        self.assert_one_error(result, "--prompt-lengths, --decode-lengths: prompt 300 + 1 + ")


class ChatParameters(Case):
    def test_set(self):
        for text, words in [
            ("/set temperature abc", "temperature must be 0 or a number in 0.01..100, got 'abc'"),
            ("/set top_k 99999999999999999999", "got '99999999999999999999'"),
            ("/set seed -2", "seed must be -1 or an integer in 0..18446744073709551615, got '-2'"),
            ("/set max_tokens 1.5", "max_tokens must be an integer in 0..1073741824, got '1.5'"),
        ]:
            result = self.check("chat", *self.model, stdin=text + "\n", code=3)
            self.assert_one_error(result, words)
