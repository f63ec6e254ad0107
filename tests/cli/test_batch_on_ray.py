"""apps/batch_on_ray.py: a batch on a cluster, here of this host alone."""

import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import types
import unittest
from unittest import mock

from test_batch import BatchCase, short_line

SCRIPT = pathlib.Path(__file__).parents[2] / "apps" / "batch_on_ray.py"
NUM_SHARDS = 3
TIMEOUT_SECONDS = 240  # Ray takes its time to start


@unittest.skipUnless(SCRIPT.exists(), "no script beside these tests")
class WithoutRay(BatchCase):
    """What the script does beside Ray."""

    def setUp(self):
        super().setUp()
        spec = importlib.util.spec_from_file_location("batch_on_ray", SCRIPT)
        self.script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.script)
        self.output = self.folder / "out.jsonl"
        self.shards = [self.script.shard_path(self.output, index, 2) for index in range(2)]

    def arguments(self, *flags):
        words = [str(SCRIPT), "--", "-m", "model", "-i", "in.jsonl", "-o", str(self.output), *flags]
        with mock.patch.object(sys, "argv", words):
            return self.script.parse_arguments()

    def write_manifest(self, path, **settings):
        self.script.manifest_path(path).write_text(json.dumps({"settings": settings}))

    def test_every_shard_gets_the_seed(self):
        for flags in (["-s", "7"], ["--seed=7"]):
            arguments = self.arguments("--temp", "1", *flags)
            command = self.script.shard_command(arguments, 1, 2)
            self.assertEqual(command.count("--seed"), 1)
            self.assertEqual(command[command.index("--seed") + 1], "7")
            self.assertEqual(arguments.flags, ["-m", "model", "--temp", "1"])
        self.assertIsNone(self.arguments().seed)

    def test_seed_is_that_of_the_shards_that_are_there(self):
        self.assertNotEqual(self.script.choose_seed(self.shards),
                            self.script.choose_seed(self.shards))  # fmt: skip
        self.script.manifest_path(self.shards[0]).write_text("{")
        self.write_manifest(self.shards[1], seed=5)
        self.assertEqual(self.script.choose_seed(self.shards), 5)

    def test_manifest_is_there_before_the_answers(self):
        for index, path in enumerate(self.shards):
            path.write_text(f"{index}\n")
            self.write_manifest(path, seed=5, shard=f"{index}/2")
        replaced = []

        def replace(new, path):
            replaced.append(pathlib.Path(path).name)
            os.rename(new, path)

        with mock.patch.object(self.script.os, "replace", replace):
            self.script.merge(self.shards, self.output)
        self.assertEqual(replaced, ["out.jsonl.manifest.json", "out.jsonl"])
        self.assertEqual(self.output.read_text(), "0\n1\n")
        self.assertEqual(self.script.read_settings(self.output), {"seed": 5, "shard": None})
        self.assertEqual(list(self.folder.glob("*shard*")), [])

    def test_what_is_in_the_way_is_told(self):
        arguments = types.SimpleNamespace(output=self.output, resume=False)
        self.shards[0].write_text("")  # of a run that did not begin
        self.script.require_fresh_or_own_shards(arguments, self.shards)
        self.script.manifest_path(self.output).write_text("precious")
        with self.assertRaisesRegex(SystemExit, "is not the manifest of a batch"):
            self.script.require_fresh_or_own_shards(arguments, self.shards)


@unittest.skipUnless(SCRIPT.exists(), "no script beside these tests")
@unittest.skipUnless(importlib.util.find_spec("ray"), "Ray is not installed")
class OnRay(BatchCase):
    def setUp(self):
        super().setUp()
        # Ray puts sockets into the folder, whose names may not be long.
        self.environment["PATH"] = os.environ["PATH"]

    def begin(self, *options, model=None, flags=()):
        command = [sys.executable, SCRIPT, "--tessera", self.command()[0], "--shards", NUM_SHARDS,
                   "--gpus-per-shard", 0, "--cpus-per-shard", 0.1, *options, "--",
                   *(model or self.model), "--threads", 1, "-i", "in.jsonl", "-o", "out.jsonl",
                   "--temp", 0, *flags]  # fmt: skip
        return subprocess.Popen([str(word) for word in command], cwd=self.folder,
                                env=self.environment, stderr=subprocess.PIPE, text=True)  # fmt: skip

    def finish(self, process, code):
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, code, err)
        return err

    def processes(self):
        """Ids of the runs of shards that this test has started, by shard."""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_text(errors="replace")
            except OSError:
                continue
            shard = re.search(re.escape(str(self.folder)) + r"/out\.jsonl\.shard-(\d)-of", line)
            if shard:
                found[int(shard[1])] = int(path.parent.name)
        return found

    def test_answers_are_those_of_one_run(self):
        lines = [short_line(f"{i}", f"question {i}", max_tokens=9, ignore_eos=True)
                 for i in range(20)]  # fmt: skip
        self.write_input(*lines[:7], "{", *lines[7:])
        self.check("batch", *self.model, "-i", "in.jsonl", "-o", "one.jsonl", "--temp", 0, code=3)
        self.assertIn("21/21 requests, 1 errors", self.finish(self.begin(), 3))
        self.assertEqual(self.records(), self.records("one.jsonl"))
        self.assertEqual(list(self.folder.glob("*shard*")), [])
        # What they leave can be gone on with by one process.
        result = self.check("batch", *self.model, "-i", "in.jsonl", "-o", "out.jsonl", "--temp", 0,
                            "--resume", code=3)  # fmt: skip
        self.assertIn("20 answered before", result.err)
        self.assertIn("out.jsonl exists", self.finish(self.begin(), 1))

    def test_a_killed_run_is_gone_on_with(self):
        model = self.long_model()
        lines = [short_line(f"{i}", "x", max_tokens=1500, ignore_eos=True) for i in range(60)]
        self.write_input(*lines)
        process = self.begin(model=model, flags=["--max-sequences", 2])
        self.wait_for_answer(f"out.jsonl.shard-1-of-{NUM_SHARDS}")
        os.kill(self.processes()[1], signal.SIGKILL)
        self.finish(process, 0)
        self.assertEqual(len(self.records()), 60)

    def test_interrupt_and_resume(self):
        model = self.long_model()
        lines = [short_line(f"{i}", "x", max_tokens=1500, ignore_eos=True) for i in range(60)]
        self.write_input(*lines)
        process = self.begin(model=model, flags=["--max-sequences", 2])
        for index in range(NUM_SHARDS):
            self.wait_for_answer(f"out.jsonl.shard-{index}-of-{NUM_SHARDS}")
        process.send_signal(signal.SIGINT)
        err = self.finish(process, 130)
        self.assertRegex(err, r"the rest with: \S+ --resume")
        self.assertFalse((self.folder / "out.jsonl").exists())
        while self.processes():
            time.sleep(0.1)
        self.finish(self.begin("--resume", model=model), 0)
        self.assertEqual(len(self.records()), 60)

    def test_what_is_refused_is_not_tried_again(self):
        self.write_input(short_line("a", "x"))
        began = time.monotonic()
        err = self.finish(self.begin("--retries", 50, flags=["--top-p", "3"]), 1)
        self.assertIn("--top-p must be", err)
        self.assertLess(time.monotonic() - began, TIMEOUT_SECONDS)
