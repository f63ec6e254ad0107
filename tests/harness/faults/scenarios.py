"""The commands that are disturbed, each in a folder of its own, and what they leave there."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys

TINY_MODEL = pathlib.Path(__file__).parents[2] / "golden" / "data" / "tied"
TIMEOUT_SECONDS = 60
GRACE_SECONDS = 10
QUESTION = "What do you know about foxes, and why do they sleep through the day? " * 3
NUM_REQUESTS = 6


@dataclasses.dataclass(frozen=True)
class Setup:
    tessera: str
    library: str
    model: str


@dataclasses.dataclass(frozen=True)
class Result:
    code: int  # None: it ran on after TIMEOUT_SECONDS
    out: bytes
    err: str
    answers: bytes  # what the output of a batch holds; b"" where there is none
    num_calls: int  # of the kind that was counted


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A command and its arguments, which follow those that all have."""

    name: str
    arguments: list
    stdin: bytes = b""
    ignored_output: bytes = rb"(?!)"  # what differs from run to run; as a regular expression

    @property
    def is_batch(self):
        return self.arguments[0] == "batch"

    @property
    def resumes(self):
        return "--resume" in self.arguments

    def run(self, setup, folder, fault=None, resume=False):
        """Runs the command in `folder`, disturbed as the environment `fault` says. With `resume`
        an earlier run has left something there, and the command goes on with it."""
        folder = pathlib.Path(folder)
        arguments = self.arguments
        if self.is_batch and not resume:
            (folder / "in.jsonl").write_text(requests())
            if self.resumes:
                leave_part_of_the_answers(setup, folder)
        if resume and not self.resumes:
            arguments = [*arguments, "--resume"]
        # -q leaves errors alone on standard error.
        command = [setup.tessera, arguments[0], "-m", setup.model, "--chat-template", "llama2",
                   "--device", "cpu", "--threads", "2", "-q", *arguments[1:]]  # fmt: skip
        count = folder / "count"
        count.write_bytes(bytes(8))
        environment = environment_of(folder)
        if fault is not None:
            environment |= {"LD_PRELOAD": setup.library, "FAULT_COUNT": str(count), **fault}
        code, out, err = execute(command, folder, environment, self.stdin)
        answers = folder / "out.jsonl"
        found = answers.read_bytes() if answers.exists() else b""
        return Result(
            code=code,
            out=re.sub(self.ignored_output, b"", out, flags=re.DOTALL),
            err=err.decode(errors="replace"),
            answers=re.sub(rb'"created":\d+', b'"created":0', found),  # no two runs have one time
            num_calls=int.from_bytes(count.read_bytes(), sys.byteorder),
        )


def requests():
    lines = [{"id": f"request-{i}", "prompt": f"{QUESTION} {i}"} for i in range(NUM_REQUESTS)]
    lines[2] = {"id": "bad", "prompt": 5}
    return "".join(json.dumps(line) + "\n" for line in lines)


def leave_part_of_the_answers(setup, folder):
    """The output of a run that was killed: some answers, an error record and a torn line."""
    whole = BATCH.run(setup, folder).answers.splitlines(keepends=True)
    (folder / "out.jsonl").write_bytes(b"".join(whole[:4]) + whole[4][:30])


def environment_of(folder):
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "HOME": str(folder), "LC_ALL": "C.UTF-8"}


def execute(command, folder, environment, stdin):
    """Returns the exit code or None, and what was written to standard output and error: those are
    files, so that a reader that is slow cannot disturb."""
    with open(folder / "stdout", "w+b") as out, open(folder / "stderr", "w+b") as err:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.PIPE,
                                   stdout=out, stderr=err)  # fmt: skip
        try:
            try:
                process.communicate(stdin, timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                # The machine may have been asleep, this program with it.
                process.communicate(timeout=GRACE_SECONDS)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            code = None
        return code, (folder / "stdout").read_bytes(), (folder / "stderr").read_bytes()


# Without the cache: how many tokens an answer found there depends on how far a run came.
_BATCH_ARGUMENTS = ["batch", "-i", "in.jsonl", "-o", "out.jsonl", "-n", "8", "--temp", "0",
                    "--no-prefix-cache"]  # fmt: skip
BATCH = Scenario("batch", _BATCH_ARGUMENTS)
SCENARIOS = [
    Scenario("generate", ["generate", "-p", QUESTION, "-n", "8", "--temp", "0",
                          "--stats-json", "stats.json"]),
    BATCH,
    Scenario("resume", [*_BATCH_ARGUMENTS, "--resume"]),
    # What memory there is, and whether the model fits, is the last part of the description.
    Scenario("inspect", ["inspect"], ignored_output=rb"\nmemory .*"),
    Scenario("chat", ["chat", "-n", "8", "--temp", "0"], b"Hello!\n/save saved.json\nWhy?\n"),
]  # fmt: skip
