#!/usr/bin/env python3
"""Kills `tessera batch` with SIGKILL at random times and resumes it, again and again.

    kill_and_resume.py --tessera BIN [--model DIR] [--device NAME] [--kills N] [--seed S]

A run that was never killed says what the answers are. After every kill each whole line of the
output must be one of its answers, none may be there twice, and only the last line may be torn. When
a resumed run comes to its end, the output must hold the answers of the run that was never killed,
and both must tell the same digest; then another output is begun, until there have been N kills.
Each run computes another number of answers at the same time. What a line says of how its answer was
computed, such as which tokens were cached, may differ. The same seed draws the same requests and
the same times; what a run has done by then is up to the machine.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

TINY_MODEL = pathlib.Path(__file__).parent.parent / "golden" / "data" / "tied"
NUM_REQUESTS = 60
ITEM_ERRORS = 3  # exit code of a batch some of whose requests cannot be answered
TIMEOUT_SECONDS = 60


class Failure(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Failure(what)


def write_requests(path, chance):
    """Short requests of every form, greedy and sampled, and now and then a line that is none."""
    with open(path, "w") as file:
        for number in range(NUM_REQUESTS):
            body = {
                "prompt": " ".join(chance.choices(["one", "two", "three", "four"], k=8)),
                "max_tokens": chance.randint(1, 150),
                "temperature": chance.choice([0, 0.7, 1.2]),
                "n": chance.choice([1, 1, 1, 3]),
            }
            request = {"custom_id": f"request {number}", **body}
            if chance.random() < 0.3:
                body["prompt"] = chance.choices(range(5, 200), k=12)
                request = {"custom_id": f"request {number}", "url": "/v1/completions", "body": body}
            line = json.dumps(request)
            file.write((line if chance.random() < 0.9 else line[:-1]) + "\n")


def answer_of(line):
    """What may not depend on how a run went, of a line of the output."""
    record = json.loads(line)
    body = record["response"]["body"] if record["response"] else {}
    return json.dumps([record["id"], record["custom_id"], record["error"], body.get("choices")])


class Batch:
    def __init__(self, tessera, model, device, folder, chance):
        self.folder = folder
        self.chance = chance
        self.command = [tessera, "batch", "-m", model, "--chat-template", "llama2", "--device",
                        device, "-i", folder / "in.jsonl"]  # fmt: skip

    def start(self, output, *flags):
        command = [*self.command, "-o", self.folder / output, *flags,
                   "--max-sequences", str(self.chance.choice([1, 3, 16, 64]))]  # fmt: skip
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def finish(self, process):
        """Returns the digest that the run tells when it has come to its end."""
        errors = process.communicate(timeout=TIMEOUT_SECONDS)[1].decode()
        require(process.returncode in (0, ITEM_ERRORS), f"exit code {process.returncode}: {errors}")
        return re.search(r"digest ([0-9a-f]{16})", errors)[1]

    def answers(self, output):
        """What the whole lines of an output say, and whether a torn one follows them."""
        path = self.folder / output
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        return [answer_of(line) for line in lines[:-1]], bool(lines[-1])


def check_killed(found, answers):
    for answer, count in collections.Counter(found).items():
        require(count == 1, f"there {count} times: {answer}")
        require(answer in answers, f"not an answer of the run that was never killed: {answer}")


def check_finished(found, answers):
    check_killed(found, answers)
    missing = answers.difference(found)
    require(not missing, f"{len(missing)} answers are missing: {missing}")


def kill_and_resume(batch, num_kills, chance, seed_flags):
    began = time.monotonic()
    digest = batch.finish(batch.start("reference.jsonl", *seed_flags))
    seconds = time.monotonic() - began
    answers, _ = batch.answers("reference.jsonl")
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
            found, is_torn = batch.answers(output)
            check_killed(found, set(answers))
            seen["kills"] += 1
            seen["torn lines"] += is_torn
            progress.add(len(found))
        require(batch.finish(process) == digest, "the digest differs")
        check_finished(batch.answers(output)[0], set(answers))
    seen["different numbers of lines at a kill"] = len(progress)
    return seen


def main():
    parser = argparse.ArgumentParser(description="Kills a batch and resumes it.")
    parser.add_argument("--tessera", required=True, type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, default=TINY_MODEL)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="tessera-kill-") as name:
        folder = pathlib.Path(name)
        write_requests(folder / "in.jsonl", chance)
        batch = Batch(arguments.tessera.resolve(), arguments.model.resolve(), arguments.device,
                      folder, chance)  # fmt: skip
        try:
            seen = kill_and_resume(batch, arguments.kills, chance, ["--seed", "7"])
        except Failure as failure:
            sys.exit(f"seed {arguments.seed}: {failure}")
        left = len(list(folder.glob("*.tmp.*")))
    counts = ", ".join(f"{count} {what}" for what, count in seen.items())
    print(f"seed {arguments.seed}: {counts}, {left} temporary files left; every output whole")


if __name__ == "__main__":
    main()
