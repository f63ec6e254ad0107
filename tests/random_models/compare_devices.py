#!/usr/bin/env python3
"""Compares answers of random models on a device with those of the CPU.

  python3 tests/random_models/compare_devices.py --tessera build/tessera --device cuda \\
      --count 200 --workers 8

Each seed makes a small model of a random family, with random sizes, options and weights, and a
batch of random requests. The CPU, which computes in float32, answers them with plain settings; the
device answers them in one or more flows, each with random settings: pages, chunks, how many at a
time, the type of keys and values. None of that may change what is answered, so log-probabilities of
the likeliest tokens have to be close, and another token may be drawn only where both are about as
likely. That finds what tests of known sizes leave out: a size that a kernel gets wrong, an option
that a fast path forgets, sequences that disturb each other.

A model or setting that tessera declines with an error is counted and no failure. Any other end of
the command is one, and so is an answer that differs: each is a line that begins with its seed.
--first SEED --count 1, with the other flags as they were, repeats it alone. Exits with 1 after a
failure, and when nothing was answered.
"""

import argparse
import concurrent.futures
import dataclasses
import enum
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

from random_config import random_config
from random_requests import random_bodies, random_settings, write_requests
from random_weights import write_model

CONTEXT_SIZE = 4096
FP8_PAGES = ["--kv-dtype", "fp8"]
# What tessera's errors say that are no refusals: something has gone wrong.
BREAKDOWNS = ["tessera did not expect this", "the GPU failed", "the GPU's matrix library failed"]


class Declined(Exception):
    """tessera has said that it does not do this."""


class Failure(Exception):
    pass


class Verdict(enum.Enum):
    AGREES = enum.auto()
    DECLINED = enum.auto()
    FAILED = enum.auto()


@dataclasses.dataclass
class Flow:
    """What came of a model with some settings."""

    verdict: Verdict
    text: str
    worst: float = 0.0
    median: float = 0.0


def declined(name, error):
    return Flow(Verdict.DECLINED, f"{name}: declined: {error}")


def failed(name, error):
    return Flow(Verdict.FAILED, f"{name}: FAILED: {error}")


# --- running tessera ------------------------------------------------------------------------------


def run_tessera(arguments, *flags):
    command = [str(arguments.tessera), *map(str, flags)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        raise Failure(f"no end after {arguments.timeout} seconds") from None
    if done.returncode == 0:
        return done.stdout
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    breaks_down = any(breakdown in done.stderr for breakdown in BREAKDOWNS)
    if done.returncode == 1 and errors and not breaks_down:
        raise Declined(errors[0].removeprefix("error: "))
    raise Failure(f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")


def expected_tensors(arguments, folder):
    lines = run_tessera(arguments, "inspect", "-m", folder, "--expected-tensors", "--json")
    return [(tensor["name"], tensor["shape"]) for tensor in map(json.loads, lines.splitlines())]


def answer(arguments, folder, device, settings):
    """The log-probabilities of each request's answer, as /v1/completions tells them."""
    output = folder / "answers.jsonl"
    run_tessera(arguments, "batch", "-m", folder / "model", "-i", folder / "requests.jsonl",
                "-o", output, "--overwrite", "--quiet", "--device", device, "--threads",
                arguments.threads, "-c", CONTEXT_SIZE, *settings)  # fmt: skip
    answers = {}
    for line in output.read_bytes().splitlines():
        record = json.loads(line)
        choice = record["response"]["body"]["choices"][0]
        answers[int(record["custom_id"])] = choice["logprobs"]
    return answers


# --- comparing ------------------------------------------------------------------------------------


def most_difference(device, has_fp8):
    """How far the log-probability of a token may be from the CPU's. A GPU rounds to 16 bits. Keys
    and values of 8 bits are so coarse that a sum in another order tips some of them over."""
    if device == "cpu":
        return 0.1 if has_fp8 else 0.001
    return 1.0 if has_fp8 else 0.35


def differences_of_answer(expected, found):
    """How far each log-probability is off, up to the first place where another token was drawn:
    what follows it has another text before it. That place counts as far off as the tokens that were
    drawn there are apart to the CPU."""
    differences = []
    for place, token in enumerate(expected["tokens"]):
        top, found_top = expected["top_logprobs"][place], found["top_logprobs"][place]
        differences += [abs(top[text] - found_top[text]) for text in top.keys() & found_top.keys()]
        found_token = found["tokens"][place]
        if found_token != token:
            differences.append(top[token] - top.get(found_token, float("-inf")))
            break
    return differences


def compare(expected, found, most):
    """The worst and the median difference of all answers."""
    differences = []
    if expected.keys() != found.keys():
        raise Failure(f"{len(found)} answers instead of {len(expected)}")
    for number, logprobs in expected.items():
        lengths = [len(answer["tokens"]) for answer in (logprobs, found[number])]
        if lengths[0] != lengths[1]:
            raise Failure(f"request {number}: {lengths[1]} tokens instead of {lengths[0]}")
        own = differences_of_answer(logprobs, found[number])
        too_large = [difference for difference in own if not difference <= most]  # NaN is
        if too_large:
            raise Failure(f"request {number}: a log-probability is off by {max(too_large):.3f}")
        differences += own
    return max(differences), statistics.median(differences)


# --- flows ----------------------------------------------------------------------------------------


def name_of(config):
    heads = f"{config['num_attention_heads']}/{config['num_key_value_heads']} heads"
    head_dim = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    return (f"{config['model_type']} hidden {config['hidden_size']} {heads} of {head_dim} "
            f"intermediate {config['intermediate_size']} layers {config['num_hidden_layers']} "
            f"vocabulary {config['vocab_size']}")  # fmt: skip


class Case:
    """A model and its requests."""

    def __init__(self, arguments, seed, folder):
        self.arguments = arguments
        self.folder = folder
        self.chance = random.Random(seed)
        self.config = random_config(self.chance, arguments.hidden_size)
        self.bodies = random_bodies(self.chance, arguments.prompt_tokens)
        self.name = f"seed {seed}: {name_of(self.config)} requests {len(self.bodies)}"
        self.expected = {}  # answers of the CPU, by whether pages are of fp8

    def write(self):
        write_requests(self.folder / "requests.jsonl", self.bodies)
        write_model(self.folder / "model", self.config, self.chance,
                    lambda folder: expected_tensors(self.arguments, folder))  # fmt: skip

    def flow(self):
        settings = random_settings(self.chance)
        name = f"{self.name}, {' '.join(settings)}"
        try:
            worst, median = self.compare_with_cpu(settings)
        except Declined as error:
            return declined(name, error)
        except Failure as error:
            return failed(name, error)
        text = f"{name}: agrees: worst {worst:.2g}, median {median:.2g}"
        return Flow(Verdict.AGREES, text, worst, median)

    def compare_with_cpu(self, settings):
        has_fp8 = "fp8" in settings
        if has_fp8 not in self.expected:
            plain = FP8_PAGES if has_fp8 else []
            self.expected[has_fp8] = answer(self.arguments, self.folder, "cpu", plain)
        found = answer(self.arguments, self.folder, self.arguments.device, settings)
        most = most_difference(self.arguments.device, has_fp8)
        return compare(self.expected[has_fp8], found, most)


def flows_of(arguments, seed):
    with tempfile.TemporaryDirectory(prefix=f"tessera-{seed}-", dir=arguments.scratch) as name:
        case = Case(arguments, seed, pathlib.Path(name))
        try:
            case.write()
        except Declined as error:
            return [declined(case.name, error)]
        except Failure as error:
            return [failed(case.name, error)]
        return [case.flow() for _ in range(arguments.flows)]


def run_flows(arguments):
    """The flows of all seeds, told as they come, in the order of the seeds."""
    seeds = range(arguments.first, arguments.first + arguments.count)
    flows = []
    workers = concurrent.futures.ThreadPoolExecutor(arguments.workers)
    try:
        for some in workers.map(lambda seed: flows_of(arguments, seed), seeds):
            flows += some
            for flow in some:
                if flow.verdict is Verdict.FAILED or arguments.verbose:
                    print(flow.text, flush=True)
    finally:
        workers.shutdown(cancel_futures=True)
    return flows


def summary(flows):
    agreeing = [flow for flow in flows if flow.verdict is Verdict.AGREES]
    num_declined = sum(flow.verdict is Verdict.DECLINED for flow in flows)
    num_failed = len(flows) - len(agreeing) - num_declined
    counts = f"{len(agreeing)} flows agree, {num_declined} were declined, {num_failed} failed"
    if not agreeing:
        return counts
    worst = max(flow.worst for flow in agreeing)
    median = statistics.median(flow.median for flow in agreeing)
    return f"{counts}; differences where they agree: worst {worst:.2g}, median {median:.2g}"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tessera", required=True, type=pathlib.Path)
    parser.add_argument("--device", default="cuda", help="compared with cpu (cuda)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--count", type=int, default=20, help="seeds from there on (20)")
    parser.add_argument("--flows", type=int, default=3, help="random settings of each model (3)")
    parser.add_argument("--workers", type=int, default=1, help="models at the same time (1)")
    parser.add_argument("--threads", type=int, default=2, help="of each command (2)")
    parser.add_argument("--hidden-size", type=int, default=3072, help="of the widest model (3072)")
    parser.add_argument("--prompt-tokens", type=int, default=5000, help="of a batch, about (5000)")
    parser.add_argument("--timeout", type=int, default=200, help="of each command, seconds (200)")
    parser.add_argument("--scratch", metavar="DIR", help="where models are written (TMPDIR)")
    parser.add_argument("--verbose", action="store_true", help="a line for every flow")
    arguments = parser.parse_args()
    if arguments.hidden_size < 256:
        parser.error("--hidden-size must be at least 256")
    arguments.tessera = arguments.tessera.resolve()
    return arguments


def main():
    flows = run_flows(parse_arguments())
    print(summary(flows))
    verdicts = {flow.verdict for flow in flows}
    sys.exit(Verdict.FAILED in verdicts or Verdict.AGREES not in verdicts)


if __name__ == "__main__":
    main()
