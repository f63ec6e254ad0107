"""--rope-scaling auto: contexts longer than the model was trained for."""

import json
import pathlib
import re

from support import Case, edit_json, raw, read_records

CONTEXT = 256  # tokens of the tiny model
LONG = "word " * 100
TOO_MANY = str((1 << 30) - 10000)  # tokens whose keys and values take a TiB
GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "data"
AUTO = ["--rope-scaling", "auto"]
WARNING = re.compile(
    r"^warning: a context of (\d+) tokens is beyond the (\d+) that the model was trained for: "
    r"RoPE is stretched by YaRN, factor ([\d.]+)$",
    re.MULTILINE,
)


class RopeScaling(Case):
    def generate(self, *arguments, model=None, **options):
        return self.check("generate", *(model or self.model), *arguments, "--stats-json", "stats.json",
                          **options)  # fmt: skip

    def stats(self):
        return json.loads((self.folder / "stats.json").read_text().splitlines()[-1])

    def warning(self, result):
        """The numbers that were said, once: context, trained context, factor."""
        (match,) = WARNING.findall(result.err)
        self.assertNotIn("warning", WARNING.sub("", result.err))
        return int(match[0]), int(match[1]), float(match[2])

    def assert_stretched(self, result, context):
        self.assertEqual(self.warning(result), (context, CONTEXT, float(f"{context / CONTEXT:.6g}")))

    def model_with(self, name, **config):
        folder = self.copy_model(name)
        edit_json(folder / "config.json", **config)
        return ["-m", folder, *self.model[2:]]


class Generate(RopeScaling):
    def test_the_prompt_and_its_answer_decide(self):
        self.generate("-p", LONG, "-n", "8", code=1)
        for model in (self.model, raw(self.model)):
            result = self.generate("-p", LONG, "-n", "8", "--ignore-eos", *AUTO, model=model)
            stats = self.stats()
            self.assertGreater(stats["prompt_tokens"], CONTEXT)
            self.assertEqual(stats["completion_tokens"], 8)
            self.assertEqual(stats["context_size"], stats["prompt_tokens"] + 8)
            self.assert_stretched(result, stats["context_size"])

    def test_an_answer_of_unknown_length_gets_the_usual_room(self):
        result = self.generate("-p", LONG, *AUTO)
        stats = self.stats()
        self.assertEqual(stats["context_size"], stats["prompt_tokens"] + 512)
        self.assert_stretched(result, stats["context_size"])

    def test_a_context_that_was_asked_for(self):
        result = self.generate("-p", "Hi", "-n", "8", *AUTO, "-c", "400")
        self.assertEqual(self.stats()["context_size"], 400)
        self.assert_stretched(result, 400)
        self.assert_one_error(self.generate("-p", LONG, "-n", "8", *AUTO, "-c", "400", code=1), "400")
        # Said only where things are said.
        self.assertEqual(self.generate("-p", "Hi", "-n", "8", *AUTO, "-c", "400", "-q").err, "")

    def test_what_fits_is_what_it_was(self):
        for flags in ([], ["-c", "200"], ["-c", str(CONTEXT)]):
            plain = self.generate("-p", "Hi", "-n", "16", "--ignore-eos", *flags)
            context = self.stats()["context_size"]
            result = self.generate("-p", "Hi", "-n", "16", "--ignore-eos", *flags, *AUTO)
            self.assertEqual(result.out, plain.out)
            self.assertEqual(self.stats()["context_size"], context)
            self.assertNotIn("warning", result.err)

    def test_it_is_the_yarn_that_config_json_could_say(self):
        """A stretched model and one whose config.json has the same scaling say the same."""
        ours = self.generate("-p", LONG, "-n", "24", "--ignore-eos", *AUTO)
        context, trained, _ = self.warning(ours)
        yarn = {"rope_type": "yarn", "factor": context / trained,
                "original_max_position_embeddings": trained}  # fmt: skip
        flags = self.model_with("yarn", rope_scaling=yarn, max_position_embeddings=context)
        written = self.check("generate", *flags, "-p", LONG, "-n", "24", "--ignore-eos")
        self.assertEqual(ours.out, written.out)
        plain = self.model_with("plain", max_position_embeddings=context)
        other = self.check("generate", *plain, "-p", LONG, "-n", "24", "--ignore-eos")
        self.assertNotEqual(ours.out, other.out)

    def test_memory_has_the_last_word(self):
        result = self.generate("-p", LONG, "-n", TOO_MANY, *AUTO, code=1)
        self.assertIn("does not fit in memory", result.err)
        self.assertIn("hint: --ctx-size ", result.err)

    def test_other_scalings_are_refused_by_name(self):
        llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                  "high_freq_factor": 4.0, "original_max_position_embeddings": 32}  # fmt: skip
        for rope in ({"rope_type": "linear", "factor": 1.5}, llama3):
            flags = self.model_with(rope["rope_type"], rope_scaling=rope)
            result = self.check("generate", *flags, "-p", LONG, "-n", "8", *AUTO, code=1)
            self.assert_one_error(
                result, f"it is scaled already, {rope['rope_type']} by {rope['factor']:g}")
            self.assertIn(f"beyond the {CONTEXT}", result.err)
            self.check("generate", *flags, "-p", "Hi", "-n", "8", *AUTO)

    def test_linear_scaling_that_reaches_so_far_stays(self):
        flags = self.model_with("far", rope_scaling={"rope_type": "linear", "factor": 8.0})
        result = self.check("generate", *flags, "-p", LONG, "-n", "8", "--ignore-eos", *AUTO)
        self.assertIn("its RoPE needs no stretching", result.err)
        self.check("generate", *flags, "-p", LONG, "-n", "8", code=1)

    def test_wrong_words(self):
        result = self.generate("-p", "x", "--rope-scaling", "yarn", code=2)
        self.assert_one_error(result, "must be auto or model, got 'yarn'")
        self.assert_one_error(self.generate("-p", "x", "-c", "400", "--rope-scaling", "model",
                                            code=2), "400")  # fmt: skip


class WithoutAPrompt(RopeScaling):
    """Commands that know none when they begin ask for the context."""

    def test_refused_without_a_context(self):
        path = self.write("in", LONG)
        for command in (["chat"], ["prefill", path, "-o", "x.kv"], ["inspect"], ["bench"],
                        ["batch", "-i", path, "-o", "out"], ["generate", "--kv", "x", "-p", "x"],
                        ["summarize", "--kv", "x"]):  # fmt: skip
            result = self.check(*command, *self.model, *AUTO, code=2)
            self.assert_one_error(result, "--rope-scaling auto needs -c here: ")
            self.assertIn("hint: -c N", result.err)

    def test_chat(self):
        result = self.check("chat", *self.model, *AUTO, "-c", "800", "-n", "8", stdin=LONG)
        self.assert_stretched(result, 800)
        self.check("chat", *self.model, "-n", "8", stdin=LONG, code=3)

    def test_inspect(self):
        flags = [*self.model, *AUTO, "-c", "512"]
        config = json.loads(self.check("inspect", *flags, "--json").out)["config"]
        self.assertEqual(config["max_position_embeddings"], 512)
        self.assertEqual(config["rope_scaling"], "yarn")
        self.assertEqual(config["rope_scaling_factor"], 2)
        result = self.check("inspect", *flags)
        self.assertIn("512 tokens, trained for 256", result.out)
        self.assertIn("scaling yarn by 2, amplitude 1.06931", result.out)
        self.assert_stretched(result, 512)

    def test_batch(self):
        self.write("in.jsonl", json.dumps({"id": "a", "prompt": LONG, "max_tokens": 8}) + "\n")
        flags = ["batch", *self.model, "-i", "in.jsonl", "-o", "out.jsonl"]
        self.assert_stretched(self.check(*flags, *AUTO, "-c", "800"), 800)
        (record,) = read_records(self.folder / "out.jsonl")
        choice = record["response"]["body"]["choices"][0]
        text = self.generate("-p", LONG, "-n", "8", *AUTO, "-c", "800").out
        self.assertEqual(choice["message"]["content"], text.removesuffix("\n"))
        devices = ["--devices", "cpu,cpu", "--threads", "1", "--overwrite"]
        anywhere = [flag for flag in flags if flag not in ("--device", "cpu")]
        self.assert_stretched(self.check(*anywhere, *AUTO, "-c", "800", *devices), 800)
        # What is left of a batch is not done with another RoPE.
        with open(self.folder / "in.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"id": "b", "prompt": "Hi"}) + "\n")
        result = self.check(*flags, "--resume", code=2)
        self.assert_one_error(result, 'rope_scaling was "auto", now not set')


class Kv(RopeScaling):
    def prefill(self, *flags):
        path = self.write("document.txt", LONG)
        return self.check("prefill", *self.model, path, "-o", "document.kv", *flags)

    def ask(self, *flags, code=0):
        return self.generate("--kv", "document.kv", "-p", "Who?", "-n", "8", *flags, code=code)

    def test_the_same_stretch_goes_on(self):
        flags = [*AUTO, "-c", "800"]
        self.assert_stretched(self.prefill(*flags), 800)
        ours = self.ask(*flags)
        self.assertGreater(self.stats()["cached_prompt_tokens"], CONTEXT)
        whole = self.generate("-p", f"{LONG}\n\nWho?", "-n", "8", *flags)
        self.assertEqual(ours.out, whole.out)

    def test_another_is_refused(self):
        self.prefill(*AUTO, "-c", "800")
        result = self.ask(*AUTO, "-c", "801", code=1)
        self.assert_one_error(result, "RoPE stretched for 800 tokens; this run has ")
        self.assertIn("RoPE stretched for 801 tokens", result.error_lines[0])
        result = self.ask(code=1)
        self.assert_one_error(result, "RoPE stretched for 800 tokens; this run has ")

    def test_a_model_whose_rope_depends_on_the_context(self):
        """The keys of one context are turned otherwise than those of another."""
        path = self.write("document.txt", "word " * 20)
        for name, same, others in [("llama_dynamic", "130", ["128", "131"]),
                                   ("phi3_short", "140", [])]:  # fmt: skip
            model = ["-m", GOLDEN / name, "--page-size", "16", *self.model[2:]]
            document = [path, "-o", f"{name}.kv"]
            ask = ["generate", *model, "--kv", f"{name}.kv", "-p", "Who?", "-n", "4"]
            self.check("prefill", *model, *document, "-c", "130")
            for context in others:
                result = self.check(*ask, "-c", context, code=1)
                self.assert_one_error(result, "RoPE stretched for 130 tokens; this run has ")
            ours = self.check(*ask, "-c", same)
            whole = self.check("generate", *model, "-p", "word " * 20 + "\n\nWho?", "-n", "4",
                               "-c", same)  # fmt: skip
            self.assertEqual(ours.out, whole.out)
        # Factors of short contexts, and of long ones.
        result = self.check(*ask, "-c", "200", code=1)
        self.assert_one_error(result, "this run has ")
        self.assertIn("RoPE stretched for 256 tokens", result.error_lines[0])
        self.check("prefill", *model, *document, "-c", "200")
        self.check(*ask, "-c", "220")
        self.check(*ask, "-c", "130", code=1)


class Summarize(RopeScaling):
    def summarize(self, *arguments, name="long.txt", code=0):
        path = self.write(name, LONG)
        return self.check("summarize", *self.model, path, *arguments, code=code)

    def test_one_pass(self):
        chunks = self.summarize("-n", "16", "--json")
        self.assertEqual(json.loads(chunks.out)["plan"]["kind"], "chunks")
        result = self.summarize("-n", "16", "--json", *AUTO)
        report = json.loads(result.out)
        self.assertEqual(report["plan"]["kind"], "one_pass")
        context = report["calls"][0]["prompt_tokens"] + 16
        self.assertEqual(report["plan"]["context_size"], context)
        self.assert_stretched(result, context)
        self.assertRegex(result.err, rf"tokens, context {context} \(trained 256, YaRN factor \d\.")
        self.assertEqual(self.summarize("-n", "16", *AUTO, "--on-overflow", "error").out,
                         report["summary"] + "\n")  # fmt: skip

    def test_several_documents(self):
        second = self.write("second.txt", LONG + LONG)
        result = self.summarize(second, "-n", "16", "--json", *AUTO)
        report = json.loads(result.out)
        self.assertEqual(report["plan"]["kind"], "one_pass")
        self.assert_stretched(result, report["calls"][0]["prompt_tokens"] + 16)
        # Each by itself: the longest decides.
        alone = self.check("summarize", *self.model, second, "-n", "16", *AUTO)
        each = self.summarize(second, "-n", "16", "--each", *AUTO)
        self.assertEqual(self.warning(each), self.warning(alone))

    def test_what_fits_or_is_to_be_cut_is_not_stretched(self):
        path = self.write("short.txt", "A short report.")
        self.assertNotIn("warning", self.check("summarize", *self.model, path, "-n", "8", *AUTO).err)
        chunked = self.summarize("-n", "16", "--chunk")
        result = self.summarize("-n", "16", "--chunk", *AUTO)
        self.assertEqual(result.out, chunked.out)
        self.assertNotIn("warning", result.err)

    def test_memory_has_the_last_word(self):
        flags = ["-n", TOO_MANY, *AUTO]
        result = self.summarize(*flags, code=1)
        self.assertIn("for which there is no memory", result.err)
        self.assertIn("no room for a part of the document", result.err)
        result = self.summarize(*flags, "--on-overflow", "error", code=1)
        self.assertIn("does not fit in memory", result.err)
