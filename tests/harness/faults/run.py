#!/usr/bin/env python3
"""Makes one call fail in a run of tessera, or every call from one on, and looks at how it ends.

    run.py --tessera BIN --library libfailing_calls.so [--points N] [--seed S] [PATTERN ...]

A point is a command, a kind of call (memory, block, open, read, write, sync, thread), the number of
the call that fails, and how. --points says how many of them are tried for each command and kind,
once for a single failure and once for lasting ones; 0: all that there are, of which memory has
some 90,000. A PATTERN such as batch, batch.read or generate.memory.onward.77 keeps the points whose
names begin so.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import sys
import tempfile

import verdict
from points import ERRORS, choose_points, kind_name
from scenarios import SCENARIOS, TINY_MODEL, Setup


class Harness:
    def __init__(self, setup):
        self.setup = setup
        self.expected = {}  # the undisturbed run of each command

    def prepare(self, scenario):
        with temporary_folder() as folder:
            self.expected[scenario.name] = scenario.run(self.setup, folder)

    def count_calls(self, scenario, call):
        with temporary_folder() as folder:
            return scenario.run(self.setup, folder, {"FAULT_CALL": call}).num_calls

    def try_point(self, scenario, point):
        """Returns the outcome in a word or two, and what is wrong with it."""
        expected = self.expected[scenario.name]
        with temporary_folder() as folder:
            result = scenario.run(self.setup, folder, point.environment)
            problems = verdict.problems(scenario, point, result, expected)
            if scenario.is_batch:
                resumed = scenario.run(self.setup, folder, resume=True)
                problems += verdict.problems_after_resume(resumed, expected)
        if problems:
            problems.append(result.err.strip() or "no message")
        return outcome(point, result, expected), problems


class Report:
    def __init__(self):
        self.outcomes = collections.defaultdict(collections.Counter)
        self.num_points = 0
        self.num_wrong = 0

    def add(self, point, outcome, problems):
        self.num_points += 1
        self.outcomes[point.kind][outcome] += 1
        if problems:
            self.num_wrong += 1
            self.outcomes[point.kind]["WRONG"] += 1
            print(f"FAILED {point.name}: {'; '.join(problems)}", flush=True)

    def print(self):
        for kind, counts in self.outcomes.items():
            print(f"{kind:<24}", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())))


def outcome(point, result, expected):
    if result.num_calls < point.at:
        return "not reached"
    return "as undisturbed" if result.code == expected.code else f"exit {result.code}"


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="tessera-faults-")


def choose_work(harness, arguments):
    """Pairs of a scenario and a point. The same for the same seed, whatever the patterns."""
    patterns = tuple(arguments.patterns) or ("",)
    for scenario in SCENARIOS:
        for call in ERRORS:
            kinds = {onward: kind_name(scenario.name, call, onward) for onward in (False, True)}
            if not any(kind.startswith(p) or p.startswith(kind)
                       for kind in kinds.values() for p in patterns):  # fmt: skip
                continue
            if scenario.name not in harness.expected:
                harness.prepare(scenario)
            num_calls = harness.count_calls(scenario, call)
            for onward, kind in kinds.items():
                generator = random.Random(f"{arguments.seed} {kind}")
                limit = 0 if any(p.startswith(kind + ".") for p in patterns) else arguments.points
                points = choose_points(scenario.name, call, onward, num_calls, limit, generator)
                yield from ((scenario, p) for p in points if p.name.startswith(patterns))


def parse_arguments():
    parser = argparse.ArgumentParser(description="Fault injection for the tessera command line.")
    parser.add_argument("--tessera", required=True, type=pathlib.Path)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, default=TINY_MODEL)
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    paths = (arguments.tessera, arguments.library, arguments.model)
    harness = Harness(Setup(*(str(path.resolve()) for path in paths)))
    work = list(choose_work(harness, arguments))
    report = Report()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as executor:
        results = executor.map(lambda item: harness.try_point(*item), work)
        for (_, point), (ending, problems) in zip(work, results):
            report.add(point, ending, problems)
    report.print()
    print(f"{report.num_points} points, seed {arguments.seed}: {report.num_wrong} wrong")
    sys.exit(report.num_wrong > 0 or report.num_points == 0)


if __name__ == "__main__":
    main()
