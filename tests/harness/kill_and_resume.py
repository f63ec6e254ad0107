#!/usr/bin/env python3
"""Kills `tessera batch` with SIGKILL at random times and resumes it, again and again.

    kill_and_resume.py --tessera BIN [--model DIR] [--kills N] [--seed S]

A run that was never killed says what the answers are. After every kill each whole line of the
output must be one of its lines, no line may be there twice, and only the last may be torn. When a
resumed run comes to its end, the output must hold the very lines of the run that was never killed;
then another output is begun, until there have been N kills. The same seed draws the same requests
and the same times; what a run has done by then is up to the machine.
"""

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

TINY_MODEL = pathlib.Path(__file__).parent.parent / "golden" / "data" / "tied"
NUM_REQUESTS = 40
ITEM_ERRORS = 3  # exit code of a batch some of whose requests cannot be answered
TIMEOUT_SECONDS = 60


class Failure(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Failure(what)


def write_requests(path, chance):
    """Short requests, greedy and sampled, and now and then a line that is none."""
    with open(path, "w") as file:
        for number in range(NUM_REQUESTS):
            request = {
                "custom_id": f"request {number}",
                "prompt": " ".join(chance.choices(["one", "two", "three", "four"], k=8)),
                "max_tokens": chance.randint(1, 150),
                "temperature": chance.choice([0, 0.7, 1.2]),
            }
            line = json.dumps(request)
            file.write((line if chance.random() < 0.9 else line[:-1]) + "\n")


class Batch:
    def __init__(self, tessera, model, folder):
        self.folder = folder
        self.command = [tessera, "batch", "-m", model, "--chat-template", "llama2", "--device",
                        "cpu", "-i", folder / "in.jsonl"]  # fmt: skip

    def start(self, output, *flags):
        command = [*self.command, "-o", self.folder / output, *flags]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def finish(self, process):
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        require(process.returncode in (0, ITEM_ERRORS),
                f"exit code {process.returncode}: {errors.decode()}")  # fmt: skip

    def lines(self, output):
        """The whole lines of an output, and whether a torn one follows them."""
        path = self.folder / output
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        return lines[:-1], bool(lines[-1])


def check_killed(lines, answers):
    for line, count in collections.Counter(lines).items():
        require(count == 1, f"there {count} times: {line.decode()}")
        require(line in answers, f"not an answer of the run that was never killed: {line.decode()}")


def check_finished(lines, answers):
    check_killed(lines, answers)
    missing = answers.difference(lines)
    require(not missing, f"{len(missing)} answers are missing, one of them {missing}")


def kill_and_resume(batch, num_kills, chance, seed_flags):
    began = time.monotonic()
    batch.finish(batch.start("reference.jsonl", *seed_flags))
    seconds = time.monotonic() - began
    answers, _ = batch.lines("reference.jsonl")
    require(len(answers) == NUM_REQUESTS, f"{len(answers)} answers to {NUM_REQUESTS} requests")

    seen = collections.Counter()
    progress = {0}  # how many lines an output had when its run was killed
    while seen["kills"] < num_kills:
        seen["outputs"] += 1
        output, flags = f"out{seen['outputs']}.jsonl", seed_flags
        while True:
            process = batch.start(output, *flags)
            flags = [*seed_flags, "--resume"]
            try:
                process.wait(timeout=chance.expovariate(3 / seconds))
            except subprocess.TimeoutExpired:
                pass
            if process.poll() is not None or seen["kills"] == num_kills:
                break
            process.kill()
            process.communicate()
            lines, is_torn = batch.lines(output)
            check_killed(lines, set(answers))
            seen["kills"] += 1
            seen["torn lines"] += is_torn
            progress.add(len(lines))
        batch.finish(process)
        check_finished(batch.lines(output)[0], set(answers))
    seen["different numbers of lines at a kill"] = len(progress)
    return seen


def main():
    parser = argparse.ArgumentParser(description="Kills a batch and resumes it.")
    parser.add_argument("--tessera", required=True, type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, default=TINY_MODEL)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="tessera-kill-") as name:
        folder = pathlib.Path(name)
        write_requests(folder / "in.jsonl", chance)
        batch = Batch(arguments.tessera.resolve(), arguments.model.resolve(), folder)
        try:
            seen = kill_and_resume(batch, arguments.kills, chance, ["--seed", "7"])
        except Failure as failure:
            sys.exit(f"seed {arguments.seed}: {failure}")
        left = len(list(folder.glob("*.tmp.*")))
    counts = ", ".join(f"{count} {what}" for what, count in seen.items())
    print(f"seed {arguments.seed}: {counts}, {left} temporary files left; every output whole")


if __name__ == "__main__":
    main()
