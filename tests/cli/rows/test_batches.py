"""Rows 74 to 86 and 88: files of requests, and where answers go."""

import gzip
import json
import os
import signal
import subprocess
import time

from rows.contract import Row


class Batches(Row):
    def lines(self, *lines, name="in.jsonl"):
        """Writes requests: objects, text or bytes, a line each."""
        encoded = [line if isinstance(line, bytes)
                   else (line if isinstance(line, str) else json.dumps(line)).encode()
                   for line in lines]  # fmt: skip
        return self.write(name, b"".join(line + b"\n" for line in encoded))

    def batch(self, *arguments, output="out.jsonl"):
        return self.measured("batch", *self.model, "-n", "2", "-i", "in.jsonl", "-o", output,
                             *arguments)  # fmt: skip

    def finished(self, code, *arguments):
        result = self.batch(*arguments)
        self.assertEqual(result.code, code, result.err)
        self.assert_harmless(result)
        return result

    def batch_refused(self, words, *arguments, code=1, output="out.jsonl", **options):
        return self.refused("batch", *self.model, "-n", "2", "-i", "in.jsonl", "-o", output,
                            *arguments, words=words, code=code, **options)  # fmt: skip

    def records(self, name="out.jsonl"):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def errors(self):
        """Messages of the records that have an error, and how many have none."""
        records = self.records()
        messages = [r["error"]["message"] for r in records if r["error"]]
        return messages, len(records) - len(messages)


def request(name, **fields):
    return {"id": name, "prompt": "hi", **fields}


class Requests(Batches):
    def test_row_074_bad_line(self):
        self.lines(*(request(str(i)) for i in range(16)), "{bad", request("last"))
        self.batch_refused(["in.jsonl:17", "JSON"], "--strict")
        self.assertFalse((self.folder / "out.jsonl").exists())
        self.finished(3)
        messages, answered = self.errors()
        self.assertEqual(answered, 17)
        self.assertIn("17", messages[0] + json.dumps(self.records()))

    def test_row_075_duplicate_names(self):
        self.lines(request("a"), request("b"), request("a"))
        self.batch_refused(["in.jsonl", "1", "3", "a"])

    def test_row_076_fields(self):
        bad = [
            ({"prompt": 5}, "prompt"),
            ({"prompt": None, "messages": "x"}, "messages"),
            ({"max_tokens": -1}, "max_tokens"),
            ({"max_tokens": 1e12}, "max_tokens"),
            ({"max_tokens": "5"}, "max_tokens"),
            ({"temperature": -1}, "temperature"),
            ({"top_p": 0}, "top_p"),
            ({"frobnicate": 1}, "frobnicate"),
        ]
        self.lines(*(request(str(i), **fields) for i, (fields, _) in enumerate(bad)))
        self.finished(3)
        messages, answered = self.errors()
        self.assertEqual(answered, 0)
        for message, (_, field) in zip(messages, bad):
            self.assertIn(field, message)

    def test_row_077_odd_files(self):
        first, second = (json.dumps(request(name)).encode() for name in "ab")
        self.write("in.jsonl", b"\xef\xbb\xbf" + first + b"\r\n\r\n  \n" + second)
        self.finished(0)
        self.assertEqual(len(self.records()), 2)

    def test_row_077_files_that_are_no_text(self):
        good = json.dumps(request("a")) + "\n"
        for content, words in [(good.encode("utf-16"), "is UTF-16 text"),
                               (good.encode("utf-16-le"), "looks like UTF-16 text"),
                               (gzip.compress(good.encode()), "compressed by gzip")]:  # fmt: skip
            self.write("in.jsonl", content)
            self.refused("batch", *self.model, "-i", "in.jsonl", "-o", "out.jsonl", words=words,
                         path="in.jsonl", hint="it")  # fmt: skip
            self.assertFalse((self.folder / "out.jsonl").exists())

    def test_row_078_lines_that_are_no_request(self):
        two = json.dumps(request("two"))
        self.lines(two + two, "null", "[]", '{"id":"x","prompt":"\\ud800"}', request("good"))
        self.finished(3)
        messages, answered = self.errors()
        self.assertEqual((len(messages), answered), (4, 1))

    def test_row_078_a_line_of_65_megabytes(self):
        with open(self.folder / "in.jsonl", "wb") as file:
            file.write(b'{"id":"long","prompt":"')
            for _ in range(65):
                file.write(b"x" * (1 << 20))
            file.write(b'"}\n' + json.dumps(request("good")).encode() + b"\n")
        self.finished(3)
        messages, answered = self.errors()
        self.assertEqual(answered, 1)
        self.assertIn("longer than", messages[0])

    def test_row_079_no_requests(self):
        self.write("in.jsonl", b"")
        self.assertIn("0 requests", self.finished(0).err)
        self.assertEqual((self.folder / "out.jsonl").read_bytes(), b"")


class Files(Batches):
    def setUp(self):
        super().setUp()
        self.lines(request("a"), request("b"))

    def test_row_080_input_is_output(self):
        self.batch_refused("the same file", output="in.jsonl", code=2)
        os.symlink("in.jsonl", self.folder / "link")
        os.link(self.folder / "in.jsonl", self.folder / "hard")
        for name in ("link", "hard", "./in.jsonl"):
            self.batch_refused("the same file", "--overwrite", output=name, code=2)
        self.assertEqual(len((self.folder / "in.jsonl").read_text().splitlines()), 2)

    def test_row_081_output_exists(self):
        self.write("out.jsonl", "precious\n")
        result = self.batch_refused("out.jsonl", code=2)
        self.assertIn("--resume", result.err)
        self.assertIn("--overwrite", result.err)
        self.assertEqual((self.folder / "out.jsonl").read_text(), "precious\n")

    def test_row_083_full_disk(self):
        result = self.batch(output="/dev/full")
        self.assertEqual(result.code, 1, result.err)
        self.assert_one_error(result, "No space left")
        self.assert_harmless(result)

    def test_row_084_places_that_cannot_be_written(self):
        self.batch_refused("absent/out.jsonl", output="absent/out.jsonl")
        if os.geteuid() != 0:
            os.mkdir(self.folder / "read-only", 0o500)
            self.batch_refused("Permission denied", output="read-only/out.jsonl")
        self.batch_refused("/proc/out.jsonl", output="/proc/out.jsonl")

    def test_row_085_reader_of_standard_output_has_gone(self):
        reader, writer = os.pipe()
        os.close(reader)
        process = self.start("generate", *self.model, "-p", "x", "-n", "8", stdout=writer)
        os.close(writer)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 141, err)
        self.assertNotIn(b"error", err)

    def test_row_086_half_a_character(self):
        # A model without a language: at this temperature byte tokens follow each other at random.
        names = [str(i) for i in range(24)]
        self.lines(*(request(name, max_tokens=1 + int(name) % 6, temperature=100, seed=int(name))
                     for name in names))  # fmt: skip
        self.finished(0, "--ignore-eos")
        self.assertEqual({record["custom_id"] for record in self.records()}, set(names))
        contents = [r["response"]["body"]["choices"][0]["message"]["content"]
                    for r in self.records()]  # fmt: skip
        self.assertIn("\ufffd", "".join(contents))


class Resumed(Batches):
    def test_row_082_resume_with_other_parameters(self):
        self.lines(request("a"), request("b"))
        self.finished(0, "--temp", "0")
        output = self.folder / "out.jsonl"
        first = output.read_bytes().splitlines(keepends=True)[0]
        output.write_bytes(first)
        self.batch_refused("", "--resume", "--temp", "0.5", "--seed", "1", code=2)
        self.assertEqual(output.read_bytes(), first)

    def test_row_088_killed_and_resumed(self):
        requests = [request(str(i), max_tokens=4) for i in range(60)]
        self.lines(*requests)
        self.finished(0)
        expected = sorted((self.folder / "out.jsonl").read_text().splitlines())
        wanted = {record["custom_id"]: record["response"]["body"]["choices"]
                  for record in map(json.loads, expected)}  # fmt: skip
        arguments = ["batch", *self.model, "-n", "2", "-i", "in.jsonl", "-o", "killed.jsonl"]
        for _ in range(8):
            process = self.start(*arguments, "--resume", stderr=subprocess.DEVNULL)
            time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        self.works(*arguments, "--resume")
        resumed = self.records("killed.jsonl")
        self.assertEqual(len(resumed), len(requests))
        self.assertEqual({record["custom_id"]: record["response"]["body"]["choices"]
                          for record in resumed}, wanted)  # fmt: skip
