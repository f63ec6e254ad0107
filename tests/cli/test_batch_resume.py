"""tessera batch --resume: what was answered stays, what was not is answered, nothing is mixed."""

import json
import shutil
import signal
import string

from support import edit_json, read_json_lines
from test_batch import BatchCase, openai_line, short_line


class ResumeCase(BatchCase):
    LINES = [short_line(f"item {i}", f"question {i}", max_tokens=100) for i in range(16)]

    def output(self, name="out.jsonl"):
        return (self.folder / name).read_text()

    def begin(self, *arguments, flags=None):
        """Answers the first two requests, then asks for four."""
        self.write_input(*self.LINES[:2])
        self.batch(*arguments, flags=flags)
        self.write_input(*self.LINES[:4])

    def refused(self, text, *arguments, **options):
        """--resume ends with exit code 2 and one line that holds `text`; nothing is changed."""
        before = self.output()
        result = self.batch("--resume", *arguments, code=2, **options)
        self.assert_one_error(result, text)
        self.assertEqual(self.output(), before)
        return result


class Resume(ResumeCase):
    def test_answers_are_kept_and_errors_tried_again(self):
        self.write_input(*self.LINES[:2], "{")
        self.batch(code=3)
        before = self.records()
        self.write_input(*self.LINES[:4])
        result = self.batch("--resume")
        self.assertIn("2 answered before", result.err)
        self.assertIn("dropped 1 error record, to try again", result.err)
        after = self.records()
        self.assertEqual(set(after), {"item 0", "item 1", "item 2", "item 3"})
        self.assertEqual(after["item 0"], before["item 0"])

    def test_answers_with_millions_of_logprobs_are_read(self):
        self.write_input(*self.LINES[:2])
        digest = self.batch().err.split("digest ")[1]
        records = read_json_lines(self.folder / "out.jsonl")
        for record in records:
            record["response"]["body"]["choices"][0]["logprobs"] = {"content": [0] * 2_000_001}
        self.write("out.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        result = self.batch("--resume")
        self.assertIn("2 answered before", result.err)
        self.assertEqual(result.err.split("digest ")[1], digest)

    def test_rewriting_keeps_mode_and_link(self):
        self.write_input(*self.LINES[:2], "{")
        self.batch(code=3, output="real.jsonl")
        (self.folder / "real.jsonl").chmod(0o600)
        (self.folder / "link.jsonl").symlink_to("real.jsonl")
        self.batch("--resume", code=3, output="link.jsonl")
        self.assertTrue((self.folder / "link.jsonl").is_symlink())
        self.assertEqual((self.folder / "real.jsonl").stat().st_mode & 0o777, 0o600)

    def test_torn_line(self):
        self.write_input(*self.LINES[:3])
        self.batch()
        whole = self.records()
        self.write("out.jsonl", self.output()[:-20])
        result = self.batch("--resume")
        self.assertIn("torn", result.err)
        self.assertEqual(self.records(), whole)

    def test_torn_first_line(self):
        self.write_input(*self.LINES[:2])
        self.batch()
        whole = self.records()
        for torn in (self.output()[:50], '{"id"', "\0" * 100):
            self.write("out.jsonl", torn)
            self.assertIn("torn", self.batch("--resume").err)
            self.assertEqual(self.records(), whole)

    def test_other_files_of_one_line_without_an_end_are_kept(self):
        self.write_input(*self.LINES[:2])
        for content in ('{"id": "notes", "text": "kept"}', "notes", "[1, 2]"):
            self.write("out.jsonl", content)
            result = self.batch("--resume", code=1)
            self.assert_one_error(result, "out.jsonl:1: not a batch result")
            self.assertEqual(self.output(), content)

    def test_nothing_left_needs_no_weights(self):
        self.write_input(*self.LINES[:2])
        self.assertIn("load:", self.batch("-v").err)
        before = self.output()
        result = self.batch("--resume", "-v")
        self.assertIn("2 answered before", result.err)
        self.assertNotIn("load:", result.err)
        self.assertEqual(self.output(), before)

    def test_answer_that_is_there_twice(self):
        self.begin()
        whole = self.output()
        self.write("out.jsonl", whole + whole)
        self.assert_one_error(self.batch("--resume", code=1), 'out.jsonl:3: answers "item 0"')
        self.assertEqual(self.output(), whole + whole)

    def test_answers_to_other_requests_are_told(self):
        self.begin()
        self.write_input(*self.LINES[1:4])
        self.assertIn("also holds 1 answer to requests that are not in in.jsonl",
                      self.batch("--resume").err)  # fmt: skip
        result = self.batch("--resume", "--shard", "0/2", code=2)
        self.assertIn("also holds 2 answers to requests that are not in shard 0/2 of in.jsonl",
                      result.err)  # fmt: skip

    def test_read_errors_are_not_the_end_of_a_file(self):
        # Memory at address 0 is what every attempt to read fails at.
        self.write_input(*self.LINES[:2])
        result = self.batch("--resume", output="/proc/self/mem", code=1)
        self.assert_one_error(result, "/proc/self/mem: read failed at byte 0")
        result = self.check("batch", *self.model, "-i", "/proc/self/mem", "-o", "out", code=1)
        self.assert_one_error(result, "/proc/self/mem: read failed at byte 0")

    def interrupt(self, max_tokens):
        """Begins 50 requests, 4 at a time, and interrupts them once one was answered. Returns the
        process and what it says at once."""
        lines = [short_line(f"{i}", "x", max_tokens=max_tokens) for i in range(50)]
        # As long as the others for all that can be known: it is begun first, and ends at once.
        quick = short_line("quick", "x", max_tokens=max_tokens, stop=list(string.printable))
        self.write_input(quick, *lines)
        process = self.start("batch", *self.long_model(), "-i", "in.jsonl", "-o", "out.jsonl",
                             "--max-sequences", "4", "--ignore-eos", "--temp", "0")  # fmt: skip
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.wait_for_answer()
        process.send_signal(signal.SIGINT)
        line = process.stderr.readline().decode()
        said = r"interrupted: \d requests? in flight will be finished, Ctrl-C again stops now; "
        self.assertRegex(line, said + r"the rest with: .* --temp 0 --resume\n")
        return process, line

    def test_second_interrupt_stops_now(self):
        process, _ = self.interrupt(max_tokens=60_000)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(len(self.records()), 1)

    def test_first_interrupt_lets_answers_be_finished(self):
        process, line = self.interrupt(max_tokens=500)
        num_begun = int(line.split()[1])
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b" to do | ", err)
        answered = self.records()
        self.assertIn(len(answered) - num_begun, range(1, 5))
        for custom_id, record in answered.items():
            self.assertIsNone(record["error"])
            tokens = record["response"]["body"]["usage"]["completion_tokens"]
            self.assertEqual(tokens == 500, custom_id != "quick")

        command = ["batch", *self.long_model(), "-i", "in.jsonl", "--ignore-eos", "--temp", "0"]
        resumed = self.check(*command, "-o", "out.jsonl", "--resume").err
        whole = self.check(*command, "-o", "whole.jsonl").err
        self.assertEqual(self.answers(), self.answers("whole.jsonl"))
        self.assertEqual(resumed.split("digest ")[1], whole.split("digest ")[1])


class Manifest(ResumeCase):
    def settings(self):
        return json.loads(self.output("out.jsonl.manifest.json"))["settings"]

    def test_other_sampling(self):
        self.begin("--temp", "0.5", "--seed", "1")
        result = self.refused("out.jsonl was begun with other settings", "--temp", "0.7",
                              "--seed", "2", "--stop", "x")  # fmt: skip
        self.assertIn("temperature was 0.5, now 0.7", result.err)
        self.assertIn("seed was 1, now 2", result.err)
        self.assertIn('stop was not set, now ["x"]', result.err)
        self.assertNotIn("top_k", result.err)
        self.assertIn("--force", result.err)
        self.refused("temperature was 0.5, now not set")

    def test_other_system_message_template_and_context(self):
        self.begin("--system", "Be brief.")
        self.refused('system was "Be brief.", now "Be long."', "--system", "Be long.")
        self.refused("system was", "--system", "Be brief!")
        self.refused("context_size was not set, now 128", "--system", "Be brief.", "-c", "128")
        flags = [*self.model[:2], "--chat-template", "zephyr", "--device", "cpu"]
        self.refused('chat_template was "llama2", now "zephyr"', "--system", "Be brief.",
                     flags=flags)  # fmt: skip

    def test_other_template_arguments(self):
        model = self.copy_model("model")
        edit_json(model / "tokenizer_config.json", chat_template="{{ messages[0].content ~ mood }}")
        flags = ["-m", str(model), "--device", "cpu"]
        self.begin("--template-arg", "mood=good", flags=flags)
        self.refused('template_args was {"mood":"good"}, now {"mood":1}',
                     "--template-arg", "mood=1", flags=flags)  # fmt: skip
        self.refused("now not set", flags=flags)
        self.batch("--resume", "--template-arg", "mood=good", flags=flags)

    def test_other_version(self):
        self.begin()
        path = self.folder / "out.jsonl.manifest.json"
        edit_json(path, settings={**self.settings(), "version": "0.0.0"})
        self.refused('version was "0.0.0", now')

    def test_other_model(self):
        model = self.copy_model("model")
        flags = ["-m", str(model), *self.model[2:]]
        self.begin(flags=flags)
        moved = model.rename(self.folder / "moved")
        flags[1] = str(moved)
        self.batch("--resume", flags=flags)
        self.write_input(*self.LINES[:6])

        weights = moved / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-128:] = bytes(128)
        weights.write_bytes(data)
        self.refused("model_sha256 was", flags=flags)

        shutil.copy(self.model[1] + "/model.safetensors", weights)
        edit_json(moved / "config.json", rms_norm_eps=2e-5)
        self.refused("model_sha256 was", flags=flags)

    def test_other_text_files(self):
        model = self.copy_model("model")
        flags = ["-m", str(model), *self.model[2:]]
        self.begin(flags=flags)
        for name in ("tokenizer.json", "chat_template.jinja"):
            with self.subTest(name=name):
                (model / name).write_text("{}")
                self.refused("model_sha256 was", flags=flags)
                (model / name).unlink()
        self.batch("--resume", flags=flags)

    def test_other_content_of_the_template_file(self):
        template = self.write("template.jinja", "{{ messages[0].content }}")
        flags = [*self.model[:2], "--chat-template", str(template), "--device", "cpu"]
        self.begin(flags=flags)
        flags[3] = str(template.rename(self.folder / "moved.jinja"))
        self.batch("--resume", flags=flags)
        self.write_input(*self.LINES[:6])
        self.write("moved.jinja", "{{ messages[0].content }}.")
        self.refused('chat_template was "sha256:', flags=flags)
        flags[3] = "llama2"
        self.refused(', now "llama2"', flags=flags)

    def test_other_content_of_the_tokenizer_file(self):
        model = self.copy_model("model")
        name = "tokenizer.json" if (model / "tokenizer.json").exists() else "tokenizer.model"
        tokenizer = self.folder / f"mine-{name}"
        shutil.copy(model / name, tokenizer)
        flags = ["-m", str(model), "--tokenizer", str(tokenizer), *self.model[2:]]
        self.begin(flags=flags)
        flags[3] = str(tokenizer.rename(self.folder / f"moved-{name}"))
        self.batch("--resume", flags=flags)
        self.write_input(*self.LINES[:6])
        with open(flags[3], "ab") as file:
            file.write(b" ")
        self.refused('tokenizer was "sha256:', flags=flags)
        self.refused("now not set", flags=["-m", str(model), *self.model[2:]])

    def test_is_refused_before_the_weights_are_read(self):
        model = self.copy_model("model")
        flags = ["-m", str(model), *self.model[2:]]
        self.begin(flags=flags)
        result = self.refused("seed was", "--seed", "5", "-v", flags=flags)
        self.assertNotIn("load:", result.err)

    def test_of_a_finished_output(self):
        model = self.copy_model("model")
        flags = ["-m", str(model), *self.model[2:]]
        given = ("--temp", "0.9", "--seed", "1")
        self.write_input(*self.LINES[:2], "{")
        self.batch(*given, flags=flags, code=3)
        self.write_input(*self.LINES[:2])
        self.refused("temperature was 0.9, now 0.5", "--temp", "0.5", flags=flags)
        self.refused("seed was 1, now 2", "--temp", "0.9", "--seed", "2", flags=flags)
        self.batch("--resume", *given, flags=["-m", "missing"], code=1)
        edit_json(model / "config.json", rms_norm_eps=2e-5)
        self.refused("model_sha256 was", *given, flags=flags)
        manifest = (self.folder / "out.jsonl.manifest.json").read_bytes()
        self.batch("--resume", "--force", *given, flags=flags)
        self.assertEqual((self.folder / "out.jsonl.manifest.json").read_bytes(), manifest)
        (self.folder / "out.jsonl.manifest.json").unlink()
        self.refused("out.jsonl.manifest.json: ", *given, flags=flags)

    def test_statistics_of_a_finished_output(self):
        self.write_input(*self.LINES[:2])
        self.batch("--temp", "1", "--stats-json", "first")
        self.batch("--temp", "1", "--resume", "--stats-json", "second")
        first, second = (json.loads((self.folder / name).read_text())
                         for name in ("first", "second"))  # fmt: skip
        for name in ("version", "model", "seed", "digest"):
            self.assertEqual(second[name], first[name])
        self.assertEqual(second["skipped"], 2)

    def test_random_seed_is_kept(self):
        self.begin("--temp", "1")
        seed = self.settings()["seed"]
        self.batch("--resume", "--temp", "1")
        self.assertEqual(self.settings()["seed"], seed)
        self.batch("--temp", "1", "--seed", str(seed), output="reference.jsonl")
        self.assertEqual(self.records(), self.records("reference.jsonl"))

    def test_force(self):
        self.begin("--seed", "1")
        before = self.records()
        self.batch("--resume", "--force", "--seed", "2")
        after = self.records()
        self.assertEqual(len(after), 4)
        self.assertEqual(after["item 0"], before["item 0"])
        self.assertEqual(self.settings()["seed"], 2)
        self.assert_one_error(self.batch("--force", code=2, output="other"), "--resume")

    def test_missing_or_damaged(self):
        self.begin()
        path = self.folder / "out.jsonl.manifest.json"
        for content in ("", "{", "[]", '{"settings": 1}', '{"settings": {"seed": 1e999}}'):
            with self.subTest(content=content):
                path.write_text(content)
                self.refused("out.jsonl.manifest.json: ")
        path.unlink()
        self.refused("out.jsonl.manifest.json: ")
        self.batch("--resume", "--force")
        self.assertEqual(len(self.records()), 4)
        self.batch("--resume")

    def test_edited_request(self):
        self.begin()
        for edited in (short_line("item 1", "another question", max_tokens=100),
                       short_line("item 1", "question 1", max_tokens=99),
                       short_line("item 1", "question 1", max_tokens=100, stop="x"),
                       short_line("item 1", "question 1", max_tokens=100, logprobs=True),
                       short_line("item 1", "")):  # fmt: skip
            with self.subTest(edited=edited):
                self.write_input(self.LINES[0], edited, *self.LINES[2:4])
                self.refused('in.jsonl:2: request "item 1" is not the one that out.jsonl answers')
        before = self.records()
        self.batch("--resume", "--force")
        self.assertEqual(self.records()["item 1"], before["item 1"])

    def test_request_may_be_written_otherwise(self):
        self.begin()
        content = [{"type": "text", "text": "question 0"}]
        same = openai_line("item 0", content, max_tokens=100, user="somebody")
        self.write_input(*self.LINES[1:4], same)
        self.batch("--resume")
        self.assertEqual(len(self.records()), 4)

    def test_output_without_answers_has_no_settings_to_keep(self):
        self.write_input("{", "[")
        self.batch("--seed", "1", code=3)
        self.write_input(*self.LINES[:2])
        self.batch("--resume", "--seed", "2")
        self.assertEqual(self.settings()["seed"], 2)

    def test_overwrite_replaces_it(self):
        self.begin("--seed", "1")
        self.batch("--overwrite", "--seed", "2")
        self.assertEqual(self.settings()["seed"], 2)

    def test_overwrite_keeps_the_answers_when_the_model_cannot_be_loaded(self):
        self.begin()
        before = self.output()
        self.batch("--overwrite", flags=["-m", "missing"], code=1)
        self.assertEqual(self.output(), before)

    def test_request_id_is_that_of_the_request(self):
        self.begin()
        ids = [r["response"]["request_id"] for r in read_json_lines(self.folder / "out.jsonl")]
        self.assertEqual(len(set(ids)), 2)
        for request_id in ids:
            self.assertRegex(request_id, "^req_[0-9a-f]{16}$")
