"""tessera generate: what goes where, and how it ends."""

import json
import os
import re

from support import Case, raw


class Streams(Case):
    def test_only_the_answer_on_stdout(self):
        plain = self.check("generate", *self.model, "-p", "hello", "-n", "8")
        quiet = self.check("generate", *self.model, "-p", "hello", "-n", "8", "-q")
        loud = self.check("generate", *self.model, "-p", "hello", "-n", "8", "-v")
        self.assertEqual(plain.out, quiet.out)
        self.assertEqual(plain.out, loud.out)
        self.assertTrue(plain.out.endswith("\n"))
        self.assertEqual(quiet.err, "")
        self.assertRegex(plain.err, r"prompt \d+ tok .* \| gen 8 tok .* \| ttft .* \| kv \d+/\d+")

    def test_rates_are_of_several_tokens(self):
        one = self.check("generate", *self.model, "-p", "hello", "-n", "1")
        self.assertIn("| gen 1 tok | ttft", one.err)
        two = self.check("generate", *self.model, "-p", "hello", "-n", "2")
        self.assertRegex(two.err, r"\| gen 2 tok [\d.]+ tok/s [\d.]+ GB/s \| ttft")

    def test_no_colour_in_a_pipe(self):
        result = self.check("generate", *self.model, "-p", "hello", "-n", "2", "-v")
        self.assertNotIn("\x1b", result.out + result.err)

    def test_colour_when_asked(self):
        arguments = ["generate", *self.model, "-p", "hello", "-n", "2", "--color", "always"]
        self.assertIn("\x1b[2m", self.check(*arguments).err)

    def test_who_has_to_type_is_told_how_that_ends(self):
        flags = [*self.model, "-n", "2"]
        for command in (["generate", *flags, "-p", "-"], ["generate", *flags, "-f", "-"],
                        ["summarize", *flags, "-"], ["tokenize", *self.model[:2], "-p", "-"],
                        ["batch", *flags, "-i", "-", "-o", "-"],
                        ["generate", *flags, "--system-file", "-", "-p", "hello"]):  # fmt: skip
            with self.subTest(command=command):
                terminal = self.terminal(*command)
                terminal.expect("reading from the terminal; end with Ctrl-D\r\n")
                terminal.send('{"custom_id": "1", "prompt": "hello"}\n\x04')
                self.assertEqual(terminal.exit_code(), 0, terminal.seen)
        self.assertNotIn("Ctrl-D", self.check("generate", *flags, "-p", "-", stdin="hi").err)

    def test_the_shortest_answer_is_no_longer_than_the_longest(self):
        result = self.check("generate", *self.model, "-p", "hello", "-n", "2", "--min-tokens", "5",
                            code=1)  # fmt: skip
        self.assertIn("min_tokens is 5, but max_tokens only 2", result.err)

    def test_a_flag_without_effect_is_told(self):
        flags = ["generate", *self.model, "-p", "hello", "-n", "2"]
        for given, warning in [
            (["--seed", "1", "--temp", "0"], "warning: --seed has no effect: at temperature 0"),
            (["--dtype", "float16"], "warning: --dtype float16 has no effect on a CPU"),
        ]:
            self.assertIn(warning, self.check(*flags, *given).err)
            self.assertEqual(self.check(*flags, *given, "-q").err, "")
        bench = ["bench", *self.model, "--prompt-lengths", "8", "--dtype", "float16"]
        warned = self.check(*bench, "--decode-lengths", "4", "--repetitions", "1").err
        self.assertEqual(warned.count("warning: --dtype"), 1)
        summarize = ["summarize", *self.model, "-n", "2", self.write("text", "hello")]
        warned = self.check(*summarize, "--temp", "0", "--seed", "1").err
        self.assertEqual(warned.count("warning: --seed has no effect"), 1)
        for given in (["--seed", "1", "--temp", "1"], ["--temp", "0"], ["--dtype", "bfloat16"]):
            self.assertNotIn("warning", self.check(*flags, *given).err)

    def test_stats_json(self):
        path = self.folder / "stats.json"
        arguments = ["generate", *self.model, "-p", "hello", "-n", "5", "--temp", "0.8"]
        self.check(*arguments, "--seed", "7", "--stats-json", path)
        stats = json.loads(path.read_text())
        expected = {
            "version", "model", "device", "dtype", "context_size", "weights_bytes", "kv_dtype",
            "kv_bytes", "allocated_bytes", "peak_resident_bytes", "load_seconds", "load_phases",
            "seed", "sampling", "prompt_tokens", "cached_prompt_tokens",
            "computed_prompt_tokens", "completion_tokens",
            "finish_reason", "ttft_seconds", "decode_seconds", "prefill_tokens_per_second",
            "decode_tokens_per_second", "decode_bytes_per_second", "first_token_seconds",
            "drafted_tokens", "accepted_tokens",
        }  # fmt: skip
        self.assertEqual(set(stats), expected)
        self.assertGreater(stats["decode_bytes_per_second"], 0)
        self.assertEqual(stats["seed"], 7)
        self.assertEqual(stats["completion_tokens"], 5)
        self.assertEqual(stats["finish_reason"], "length")
        self.assertEqual(stats["sampling"]["temperature"], 0.8)
        self.assertIs(stats["sampling"]["ignore_eos"], False)
        self.check(*arguments, "--ignore-eos", "--stats-json", path)
        self.assertIs(json.loads(path.read_text())["sampling"]["ignore_eos"], True)

    def test_where_the_time_went(self):
        path = self.folder / "stats.json"
        result = self.check("generate", *self.model, "-p", "hello", "-n", "2", "-v",
                            "--stats-json", path)  # fmt: skip
        self.assertRegex(result.err, r"load: [\d.]+ s = open .* \+ device .* \+ allocate .* "
                                     r"\+ weights .* GB/s\) \+ warm-up")  # fmt: skip
        self.assertRegex(result.err, r"first token: [\d.]+ s = start .* \+ load .* \+ prompt")
        stats = json.loads(path.read_text())
        phases = stats["load_phases"]
        self.assertGreater(phases.pop("file_bytes"), 0)
        self.assertEqual(len(phases), 5)
        # The clock is read once more for the whole.
        self.assertAlmostEqual(sum(phases.values()), stats["load_seconds"], delta=0.01)
        whole = stats["load_seconds"] + stats["ttft_seconds"]
        self.assertGreaterEqual(stats["first_token_seconds"], whole)
        quiet = self.check("generate", *self.model, "-p", "hello", "-n", "2").err
        self.assertNotIn("load:", quiet)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            result = self.check("generate", *self.model, "-p", "x", "-n", "4", stdout=full, code=1)
        self.assert_one_error(result, "No space left")

    def test_closed_pipe_is_quiet(self):
        reader, writer = os.pipe()
        os.close(reader)
        result = self.check("generate", *self.model, "-p", "x", "-n", "4", "-q", stdout=writer,
                            code=141)
        os.close(writer)
        self.assertEqual(result.err, "")


class Prompts(Case):
    def test_the_same_prompt_three_ways(self):
        file = self.write("prompt.txt", "Tell me more.\n")
        arguments = ["generate", *self.model, "-n", "6"]
        from_flag = self.check(*arguments, "-p", "Tell me more.").out
        self.assertEqual(self.check(*arguments, "-f", file).out, from_flag)
        self.assertEqual(self.check(*arguments, "-f", "-", stdin="Tell me more.\n").out, from_flag)
        self.assertEqual(self.check(*arguments, "-p", "-", stdin="Tell me more.").out, from_flag)

    def test_raw_is_not_the_template(self):
        results = [self.check("generate", *model, "-p", "Once upon a time", "-n", "1")
                   for model in (self.model, raw(self.model))]  # fmt: skip
        tokens = [int(re.search(r"prompt (\d+) tok", result.err)[1]) for result in results]
        self.assertGreater(tokens[0], tokens[1])

    def test_raw_goes_on_where_the_prompt_ends(self):
        story = self.check("generate", *self.demo, "--raw", "-p", "Once upon a time", "-n", "8")
        self.assertRegex(story.out, r"^ \S")

    def test_files_that_are_no_text(self):
        secret = self.write("secret", "x")
        secret.chmod(0)
        cases = [
            ("/", "is a directory"),
            (self.folder / "missing", "No such file"),
            (self.write("binary", b"\x7fELF\x00\xff\xfe"), "binary"),
            (self.write("latin1", b"caf\xe9 au lait"), "offset 3"),
        ]
        if os.geteuid() != 0:
            cases.append((secret, "Permission denied"))
        for path, reason in cases:
            with self.subTest(path=path):
                result = self.check("generate", *self.model, "-f", path, code=1)
                self.assert_one_error(result, reason)
                self.assertIn(str(path), result.err)

    def test_empty_files(self):
        path = self.write("empty", " \n")
        result = self.check("generate", *self.model, "-f", path, code=1)
        self.assert_one_error(result, f"{path}: is empty")

    def test_a_space_can_be_continued(self):
        self.check("generate", *raw(self.model), "-p", " ", "-n", "1")
        self.check("generate", *raw(self.model), "-f", self.write("space", " "), "-n", "1")
        result = self.check("generate", *raw(self.model), "-p", "", code=2)
        self.assert_one_error(result, "prompt is empty")

    def test_replace_invalid(self):
        path = self.write("latin1", b"caf\xe9 au lait")
        self.check("generate", *self.model, "-f", path, "-n", "1", "--replace-invalid")

    def test_odd_text_is_text(self):
        for text in ("a\r\nb", "\u2581", "\U0001f600", "e\u0301", "</s>", "<|eot_id|>", "[INST]"):
            with self.subTest(text=text):
                path = self.write("odd", text)
                self.check("generate", *self.model, "-f", path, "-n", "1")

    def test_special_tokens_typed_are_plain_text(self):
        def num_tokens(text):
            result = self.check("generate", *self.model, "-p", text, "-n", "1")
            return int(re.search(r"prompt (\d+) tok", result.err)[1])

        self.assertGreater(num_tokens("a</s>"), num_tokens("a") + 1)


class Limits(Case):
    CONTEXT = 64

    def num_tokens(self, text):
        result = self.check("generate", *raw(self.model), "-p", text, "-n", "1")
        return int(re.search(r"prompt (\d+) tok", result.err)[1])

    def test_around_the_end_of_the_context(self):
        text = "x" * 30
        room = self.CONTEXT - self.num_tokens(text)
        arguments = ["generate", *raw(self.model), "-p", text, "-c", self.CONTEXT]
        for asked in (room - 1, room):
            result = self.check(*arguments, "-n", asked)
            self.assertIn(f"gen {asked} tok", result.err)
        result = self.check(*arguments, "-n", room + 1, code=1)
        self.assert_one_error(result, str(self.CONTEXT))

    def test_full_context_is_said(self):
        result = self.check("generate", *raw(self.model), "-p", "x", "-c", self.CONTEXT)
        self.assertIn("context is full", result.err)

    def test_too_long(self):
        result = self.check("generate", *self.model, "-p", "word " * 2000, code=1)
        self.assert_one_error(result)

    def test_kibi_tokens(self):
        flags = self.long_model()
        for spelled in ("2k", "2K", "2048"):
            result = self.check("generate", *flags, "-p", "x", "-n", "1", "-c", spelled)
            self.assertIn("/2048", result.err)


    def test_ignore_eos(self):
        flags = ["generate", *self.model, "-p", "x"]
        ended = self.check(*flags)
        self.assertNotIn("context is full", ended.err)
        self.assertIn("context is full", self.check(*flags, "--ignore-eos").err)


class Reproducibility(Case):
    def test_seed(self):
        arguments = ["generate", *self.model, "-p", "x", "-n", "24", "--temp", "1.5"]
        first = self.check(*arguments, "--seed", "1").out
        self.assertEqual(self.check(*arguments, "--seed", "1").out, first)
        self.assertNotEqual(self.check(*arguments, "--seed", "2").out, first)

    def test_seed_minus_one_is_a_random_one(self):
        arguments = ["generate", *self.model, "-p", "x", "-n", "8", "--temp", "1.5", "--seed"]
        seeds = {re.search(r"seed (\d+)", self.check(*arguments, *seed).err)[1]
                 for seed in (["-1"], ["-1"], ["5", "--seed", "-1"])}  # fmt: skip
        self.assertEqual(len(seeds), 3)
        at_zero = self.check(*arguments[:-2], "0", "--seed", "-1")
        self.assertNotIn("--seed has no effect", at_zero.err)

    def test_a_drawn_seed_is_printed_and_works(self):
        arguments = ["generate", *self.model, "-p", "x", "-n", "24", "--temp", "1.5"]
        drawn = self.check(*arguments)
        seed = re.search(r"seed (\d+)", drawn.err)[1]
        self.assertEqual(self.check(*arguments, "--seed", seed).out, drawn.out)


class Devices(Case):
    def test_cuda_without_gpu(self):
        self.environment["CUDA_VISIBLE_DEVICES"] = ""
        arguments = ["generate", *self.model[:4], "-p", "x", "-n", "1"]
        self.assert_one_error(self.check(*arguments, "--device", "cuda", code=1))
        self.check(*arguments, "--device", "auto")
