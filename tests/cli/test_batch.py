"""tessera batch: every line answered once, whatever happens on the way."""

import json
import os
import resource
import signal
import subprocess
import time

from support import TIMEOUT_SECONDS, Case, read_json_lines, read_records


def openai_line(custom_id, content, **body):
    body = {"messages": [{"role": "user", "content": content}], **body}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def short_line(custom_id, prompt, **fields):
    return {"id": custom_id, "prompt": prompt, **fields}


def without_time(record):
    """The record but for when its answer was finished."""
    if record["response"]:
        del record["response"]["body"]["created"]
    return record


class BatchCase(Case):
    def write_input(self, *lines, name="in.jsonl"):
        text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
        return self.write(name, text)

    def batch(self, *arguments, code=0, output="out.jsonl", flags=None):
        return self.check("batch", *(flags or self.model), "-i", "in.jsonl", "-o", output,
                          "-n", "8", *arguments, code=code)  # fmt: skip

    def wait_for_answer(self, name="out.jsonl"):
        path = self.folder / name
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not path.exists() or b"\n" not in path.read_bytes():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)

    def records(self, name="out.jsonl"):
        """What may not depend on when a run was made, by custom_id."""
        return {r["custom_id"]: without_time(r) for r in read_records(self.folder / name)}

    def answers(self, name="out.jsonl"):
        """The choices by custom_id: what may not depend on how a run went."""
        return {custom_id: record["response"]["body"]["choices"]
                for custom_id, record in self.records(name).items()}  # fmt: skip

    def digest(self, result):
        return result.err.split("digest ")[1].split()[0]


class Answers(BatchCase):
    def test_both_forms(self):
        self.write_input(
            openai_line("a", "hello", max_tokens=4, model="ignored", user="me"),
            short_line("b", "hello", max_tokens=4),
            {"custom_id": "c", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4},
        )
        result = self.batch()
        self.assertEqual(result.out, "")
        records = self.records()
        self.assertEqual(list(records), ["a", "b", "c"])
        for record in records.values():
            self.assertIsNone(record["error"])
            self.assertTrue(record["id"].startswith("batch_req_"))
            self.assertEqual(record["response"]["status_code"], 200)
            body = record["response"]["body"]
            self.assertEqual(body["object"], "chat.completion")
            self.assertEqual(body["choices"][0]["message"]["role"], "assistant")
            self.assertEqual(body["choices"][0]["finish_reason"], "length")
            usage = body["usage"]
            self.assertEqual(usage["completion_tokens"], 4)
            self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + 4)
        contents = {r["response"]["body"]["choices"][0]["message"]["content"]
                    for r in records.values()}  # fmt: skip
        self.assertEqual(len(contents), 1)

    def test_odd_but_accepted_files(self):
        a, b = json.dumps(short_line("a", "x")), json.dumps(short_line("b", "y"))
        self.write("in.jsonl", f"\ufeff{a}\r\n\r\n  \n{b}")
        self.batch()
        self.assertEqual(set(self.records()), {"a", "b"})

    def test_empty_input(self):
        self.write("in.jsonl", "")
        result = self.batch()
        self.assertIn("0 requests", result.err)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "")

    def test_stats(self):
        self.write_input(short_line("a", "x"), short_line("b", "y"))
        result = self.batch("--stats-json", "stats.json")
        stats = json.loads((self.folder / "stats.json").read_text())
        self.assertEqual((stats["requests"], stats["answered"], stats["errors"]), (2, 2, 0))
        self.assertGreater(stats["completion_tokens_per_second"], 0)
        self.assertLessEqual(stats["generation_seconds"], stats["seconds"])
        self.assertEqual(stats["preemptions"], 0)
        self.assertGreater(stats["longest_token_wait_seconds"], 0)
        self.assertLess(stats["longest_token_wait_seconds"], stats["generation_seconds"])
        self.assertIn(f", longest wait {stats['longest_token_wait_seconds']:.3f} s |", result.err)


class Errors(BatchCase):
    def test_bad_lines_fail_alone(self):
        bad = [
            ("{", "invalid JSON"),
            ("null", "JSON object"),
            ("[]", "JSON object"),
            ('{"id": "x1", "prompt": "a"} {}', "invalid JSON"),
            ('{"id": "x2", "prompt": "\\ud800"}', "invalid JSON"),
            ('{"id": "x3", "prompt": "a", "prompt": "b"}', "duplicate key"),
            ("[" * 100 + "]" * 100, "nesting"),
            ({"prompt": "a"}, "custom_id"),
            ({"id": 5, "prompt": "a"}, "id must be a string"),
            ({"id": "y1"}, "messages is missing"),
            ({"id": "y2", "prompt": ""}, "prompt is empty"),
            ({"id": "y3", "prompt": 5}, "prompt must be a string"),
            ({"id": "y4", "messages": []}, "messages is empty"),
            ({"id": "y5", "messages": [{"role": "user"}]}, "messages[0].content is missing"),
            ({"id": "y6", "messages": [{"role": "robot", "content": "a"}]}, "messages[0].role"),
            (short_line("z1", "a", max_tokens=-1), "max_tokens"),
            (short_line("z2", "a", max_tokens=1e12), "max_tokens"),
            (short_line("z3", "a", max_tokens="5"), "max_tokens"),
            (short_line("z4", "a", temperature="hot"), "temperature must be a number"),
            (short_line("z5", "a", top_p=3), "top_p"),
            (short_line("z6", "a", frobnicate=1), "frobnicate is not supported"),
            (short_line("z7", "a", stop=[1]), "stop[0]"),
            (openai_line("z8", "a", n=0), "body.n must be an integer in 1..128"),
            (openai_line("z9", "a", tools="x"), "body.tools"),
            ({**openai_line("z10", "a"), "url": "/v1/embeddings"}, "url"),
            (short_line("z11", "word " * 400), "> limit"),
            ('{"id": "w1", "prompt": "a", "temperature": 1e999}', "the number 1e999 at byte 43"),
            ('{"id": "w2", "prompt": "a", "metadata": {"a": -1e400}}', "the number -1e400"),
            ('{"id": "w3", "prompt": "a", "seed": 1e99}', "seed must be a whole number"),
            ('{"id": "w4", "prompt": "a", "seed": 18446744073709551616}', "seed must be a whole"),
            ({"id": "w5", "messages": [{"role": "user", "content": [{"type": 5, "text": "a"}]}]},
             "messages[0].content[0] must be a text part"),
            ({"id": "w6", "messages": [{"role": "user", "content": [{"type": None}]}]},
             "messages[0].content[0] must be a text part"),
            ({"id": "w7", "messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
             "messages[0].content[0].text must be a string"),
            ({"id": "w8", "messages": [{"role": {}, "content": "a"}]}, "messages[0].role"),
            ({"id": "w9", "messages": [[]]}, "messages[0] must be an object"),
            ({"id": "w10", "messages": {}}, "messages must be an array"),
            ({"id": "w11", "prompt": "a", "stop": {"a": 1}}, "stop must be a string"),
            ({**openai_line("w12", "a"), "method": ["POST"]}, "method must be"),
            ({"custom_id": "w13", "body": "a"}, "body must be an object"),
            ({"id": "w14", "prompt": "a", "k" * 5000: 1}, "kkk... is not supported"),
            ({"id": "w15", "prompt": "a", "top_p": "v" * 5000}, "vvv..."),
            ('{"id": "w16", "prompt": "a\0"}', "invalid JSON at byte"),
            ('{"id": "w17", "prompt": [%s]}' % ("0," * 2_000_000 + "0"), "2000000 JSON values"),
        ]
        self.write_input(short_line("first", "x"), *[line for line, _ in bad],
                         short_line("last", "x"))  # fmt: skip
        self.batch(code=3)
        records = read_records(self.folder / "out.jsonl")
        self.assertEqual(len(records), len(bad) + 2)
        self.assertIsNone(records[0]["error"])
        self.assertIsNone(records[-1]["error"])
        for number, ((line, text), record) in enumerate(zip(bad, records[1:]), start=2):
            with self.subTest(line=str(line)[:200]):
                self.assertIsNone(record["response"])
                self.assertIn(text, record["error"]["message"])
                self.assertEqual(record["error"]["line"], number)

    def test_strict_stops_before_loading(self):
        self.write_input(short_line("a", "x"), "{")
        result = self.batch("--strict", flags=["-m", "missing"], code=1)
        self.assert_one_error(result, "in.jsonl:2")
        self.assertFalse((self.folder / "out.jsonl").exists())

    def test_over_long_line_fails_alone(self):
        line_bytes = 1 << 30
        path = self.write_input(short_line("first", "x"))
        with open(path, "r+b") as file:
            file.seek(line_bytes, os.SEEK_END)  # leaves a hole, which reads as zeros
            file.write(b"\n" + json.dumps(short_line("last", "x")).encode())
        self.batch("--stats-json", "stats", code=3)
        errors = [record["error"] for record in read_records(self.folder / "out.jsonl")]
        self.assertEqual([errors[0], errors[1]["code"], errors[2]], [None, "line_too_long", None])
        stats = json.loads((self.folder / "stats").read_text())
        self.assertLess(stats["peak_resident_bytes"], line_bytes)

    def test_duplicate_ids(self):
        self.write_input(short_line("a", "x"), short_line("b", "x"), short_line("a", "y"))
        result = self.batch(code=1)
        self.assert_one_error(result, "in.jsonl:3")
        self.assertIn("line 1", result.err)


class Files(BatchCase):
    def setUp(self):
        super().setUp()
        self.write_input(short_line("a", "x"))

    def test_input_is_output(self):
        self.assert_one_error(self.batch(output="in.jsonl", code=2), "same file")
        (self.folder / "link").symlink_to("in.jsonl")
        self.assert_one_error(self.batch("--overwrite", output="link", code=2), "same file")
        self.assertNotEqual((self.folder / "in.jsonl").read_text(), "")

    def test_existing_output(self):
        self.write("out.jsonl", "precious\n")
        result = self.batch(code=2)
        self.assert_one_error(result, "exists")
        self.assertIn("--resume", result.err)
        self.assertIn("--overwrite", result.err)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "precious\n")
        self.assert_one_error(self.batch("--resume", code=1), "not a batch result")
        self.assertEqual((self.folder / "out.jsonl").read_text(), "precious\n")
        self.batch("--overwrite")
        self.assertEqual(set(self.records()), {"a"})

    def test_unwritable_places_are_found_before_the_model_loads(self):
        missing_model = ["-m", "missing"]
        result = self.batch(output="no/such/folder/out.jsonl", flags=missing_model, code=1)
        self.assert_one_error(result, "No such file")
        result = self.batch(output=".", flags=missing_model, code=1)
        self.assert_one_error(result, "directory")

    def test_missing_input(self):
        os.remove(self.folder / "in.jsonl")
        self.assert_one_error(self.batch(code=1), "in.jsonl")

    def test_full_disk(self):
        result = self.batch(output="/dev/full", code=1)
        self.assert_one_error(result, "No space left")
        self.assertIn("0 results of this run are safe", result.err)
        self.assertNotIn("--resume", result.err)  # which such an output cannot

    def test_full_disk_behind_standard_output(self):
        with open("/dev/full", "wb") as full:
            process = self.start("batch", *self.model, "-i", "in.jsonl", "-o", "-", stdout=full)
            _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn(b"standard output: ", err)
        self.assertNotIn(b"--resume", err)

    def test_statistics_never_replace_requests_or_answers(self):
        self.batch()
        for path in ("in.jsonl", "./in.jsonl", "out.jsonl", "new.jsonl"):
            with self.subTest(path=path):
                output = "new.jsonl" if path == "new.jsonl" else "out.jsonl"
                result = self.batch("--overwrite", "--stats-json", path, output=output, code=2)
                self.assert_one_error(result, "same file")
        self.assertEqual(set(self.records()), {"a"})
        result = self.batch("--stats-json", "-", output="-", code=2)
        self.assert_one_error(result, "standard output")

    def test_size_limit(self):
        lines = [short_line(f"item {i}", f"question {i}", max_tokens=100) for i in range(16)]
        self.write_input(*lines)
        self.batch(output="reference.jsonl")
        limit = (self.folder / "reference.jsonl").stat().st_size // 2
        command = ["batch", *self.model, "-i", "in.jsonl", "-o", "out.jsonl", "-n", "8"]
        process = self.start(*command, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, limit)))  # fmt: skip
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        text = (self.folder / "out.jsonl").read_text()
        self.assertTrue(text.endswith("\n"))
        num_safe = len(self.records())
        self.assertGreater(num_safe, 0)
        self.assertIn(f"File too large; {num_safe} results of this run are safe", err.decode())
        self.assertIn(b"hint: make room and run the same command with --resume", err)
        self.batch("--resume")
        self.assertEqual(self.records(), self.records("reference.jsonl"))

    def test_output_in_use(self):
        import fcntl

        with open(self.folder / "out.jsonl", "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.assert_one_error(self.batch(code=1), "another run")


class Streams(BatchCase):
    def test_standard_input_and_output(self):
        lines = [short_line(f"item {i}", "x") for i in range(3)]
        self.write_input(*lines)
        self.batch()
        text = "".join(json.dumps(line) + "\n" for line in lines)
        result = self.check("batch", *self.model, "-i", "-", "-o", "-", "-n", "8", stdin=text)
        self.write("piped.jsonl", result.out)
        self.assertEqual(self.records("piped.jsonl"), self.records())
        self.assertEqual(list(self.folder.glob("-*")), [])

    def test_input_that_cannot_seek(self):
        text = json.dumps(short_line("a", "x"))
        self.check("batch", *self.model, "-i", "/dev/stdin", "-o", "out.jsonl", stdin=text)
        self.assertEqual(set(self.records()), {"a"})

    def test_interrupt_while_input_is_awaited(self):
        process = self.start("batch", *self.model, "-i", "-", "-o", "out", stdin=subprocess.PIPE)
        with process:
            # More than a pipe holds: when this is written, the run has begun to read.
            process.stdin.write(b"\n" * (1 << 20))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=TIMEOUT_SECONDS), 130)

    def test_no_room_for_standard_input(self):
        self.environment["TMPDIR"] = str(self.folder / "missing")
        result = self.check("batch", *self.model, "-i", "-", "-o", "out", stdin="{}", code=1)
        self.assert_one_error(result, "missing: cannot hold a temporary file")

    def test_standard_output_cannot_be_resumed(self):
        self.write_input(short_line("a", "x"))
        for flag in ("--resume", "--overwrite"):
            result = self.batch(flag, output="-", code=2)
            self.assert_one_error(result, "standard output is not a file")
            result = self.batch(flag, output="/dev/stdout", code=2)
            self.assert_one_error(result, "/dev/stdout is not a file")

    def test_closed_pipe(self):
        self.write_input(*[short_line(f"{i}", "x", max_tokens=100) for i in range(400)])
        for output in ("-", "/dev/stdout"):
            with self.subTest(output=output):
                process = self.start("batch", *self.model, "-i", "in.jsonl", "-o", output, "-q")
                self.addCleanup(process.kill)
                self.assertIn(b"custom_id", process.stdout.readline())
                process.stdout.close()
                self.assertEqual(process.wait(timeout=TIMEOUT_SECONDS), 141)
                self.assertEqual(process.stderr.read(), b"")
                process.stderr.close()


class InputThatChanges(BatchCase):
    def test_is_not_answered(self):
        # More than is read at once.
        lines = [short_line(f"{i}", "before", max_tokens=100, user="x" * 2000) for i in range(200)]
        self.write_input(*lines)
        process = self.start("batch", *self.long_model(), "-i", "in.jsonl", "-o", "out.jsonl",
                             "--max-sequences", "2", "--temp", "0")  # fmt: skip
        self.addCleanup(process.kill)
        self.wait_for_answer()
        process.send_signal(signal.SIGSTOP)
        # In place: the run has the file open. All lines keep their lengths.
        with open(self.folder / "in.jsonl", "r+b") as file:
            text = file.read().replace(b"before", b"behind")
            file.seek(0)
            file.write(text)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(err.decode(), r"error: in\.jsonl:\d+: changed while the batch was running")
        self.assertLess(len(self.records()), 200)


class Displaced(BatchCase):
    """The output is deleted, moved or replaced while answers are written to it."""

    def displace(self, action):
        """Returns what was said, and the lines that were there when `action` was done."""
        self.write_input(*[short_line(f"{i}", "x", max_tokens=1000) for i in range(200)])
        process = self.start("batch", *self.long_model(), "-i", "in.jsonl", "-o", "out.jsonl")
        self.addCleanup(process.kill)
        self.wait_for_answer()
        process.send_signal(signal.SIGSTOP)
        seen = (self.folder / "out.jsonl").read_bytes()
        action(self.folder / "out.jsonl")
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, err)
        return err.decode(), seen

    def assert_kept(self, path, seen):
        text = path.read_bytes()
        self.assertTrue(text.startswith(seen[: seen.rindex(b"\n") + 1]))
        self.assertTrue(text.endswith(b"\n"))
        self.assertGreater(len(read_json_lines(path)), 0)

    def test_deleted(self):
        self.write("out.jsonl.rescued", "of another day")
        err, seen = self.displace(lambda path: path.unlink())
        self.assertIn("error: out.jsonl: was deleted", err)
        self.assertIn("out.jsonl.rescued.1", err)
        self.assert_kept(self.folder / "out.jsonl.rescued.1", seen)
        self.assertEqual((self.folder / "out.jsonl.rescued").read_text(), "of another day")

    def test_moved(self):
        err, seen = self.displace(lambda path: path.rename(self.folder / "elsewhere.jsonl"))
        self.assertIn(str(self.folder / "elsewhere.jsonl"), err)
        self.assert_kept(self.folder / "elsewhere.jsonl", seen)

    def test_replaced(self):
        other = self.write("other", "another file\n")
        err, seen = self.displace(lambda path: other.rename(path))
        self.assertIn("out.jsonl.rescued", err)
        self.assert_kept(self.folder / "out.jsonl.rescued", seen)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "another file\n")
