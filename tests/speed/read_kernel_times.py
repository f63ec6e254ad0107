#!/usr/bin/env python3
"""Says which kernels a GPU's time goes to, from what kernel_times.cpp wrote down.

    read_kernel_times.py FILE [--steps N] [--from S --to S]
    read_kernel_times.py --self-test

A line per kernel: how often it ran, its share of the time, and of one run the time in which no
earlier kernel ran any more ("own") and the whole time ("all", also while it waited for the one
before it): own times and gaps add up to the time that passed. --steps N looks at the last N steps
that drew tokens, --from and --to at seconds since the first kernel.
"""

import argparse
import collections
import csv
import re
import sys

DRAWS = "sample_kernel"  # a step ends with it


def kernel_name(mangled):
    """The function's name without namespaces, parameters and compilers' decorations: template
    arguments are kept as they are mangled, since only they tell instances apart."""
    if not mangled.startswith("_Z"):
        return mangled
    # A name follows its length, which may follow other digits.
    for digits in re.finditer(r"(?=([1-9]\d*))", mangled):
        begin, length = digits.end(1), int(digits[1])
        name = mangled[begin:begin + length]
        if len(name) == length and re.fullmatch(r"[a-z]\w*kernel", name):
            arguments = mangled[begin + length:]
            return name + (" " + arguments.split("EEv")[0] if arguments.startswith("I") else "")
    return mangled


def read(lines):
    """(begin, end, name) in nanoseconds, in order."""
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return sorted((int(row["begin_ns"]), int(row["end_ns"]), kernel_name(row["name"])) for row in rows)


def last_steps(activities, count):
    ends = [i for i, (_, _, name) in enumerate(activities) if name.startswith(DRAWS)]
    if len(ends) <= count:
        sys.exit(f"there are {len(ends)} steps that draw tokens: too few for the last {count}")
    return activities[ends[-count - 1] + 1:ends[-1] + 1]


def table(activities):
    """(name, runs, own, all) of every kernel, most own time first, and the time of no kernel."""
    runs, own, whole = collections.Counter(), collections.Counter(), collections.Counter()
    end = activities[0][0]
    gaps = 0
    for begin, stop, name in activities:
        gaps += max(begin - end, 0)
        own[name] += max(stop - max(begin, end), 0)
        whole[name] += stop - begin
        runs[name] += 1
        end = max(end, stop)
    return [(name, runs[name], own[name], whole[name]) for name, _ in own.most_common()], gaps


def show(activities):
    rows, gaps = table(activities)
    passed = sum(own for _, _, own, _ in rows) + gaps
    print(f"{passed / 1e6:.3f} ms, {gaps / 1e6:.3f} ms of it without a kernel")
    print(f"{'runs':>7} {'share':>7} {'own us':>9} {'all us':>9}  kernel")
    for name, runs, own, whole in rows:
        print(f"{runs:7} {own / passed:7.1%} {own / runs / 1e3:9.2f} {whole / runs / 1e3:9.2f}  {name}")


def self_test():
    mangled = "_ZN7tessera39_GLOBAL__N__0f6e7807_7_sm90_cu_430fcdf7{}IfLi4EEEvPT_"
    name = kernel_name(mangled.format("15rms_norm_kernel"))
    assert name == "rms_norm_kernel IfLi4E", name
    assert kernel_name("nvjet_sm90_tst_64x8") == "nvjet_sm90_tst_64x8"
    lines = ["begin_ns\tend_ns\tgrid\tname"]
    for step in range(3):
        at = step * 1000
        lines += [f"{at}\t{at + 400}\t1x1x1\ta", f"{at + 300}\t{at + 600}\t1x1x1\tb",
                  f"{at + 700}\t{at + 800}\t1x1x1\t{DRAWS}"]
    steps = last_steps(read(lines), 2)
    assert len(steps) == 6, steps
    # b begins in a, and the second step's first kernel 200 ns after the first step.
    assert table(steps) == ([("a", 2, 800, 800), ("b", 2, 400, 600), (DRAWS, 2, 200, 200)], 400)
    print("read_kernel_times: fine")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--from", dest="begin", type=float, default=0.0)
    parser.add_argument("--to", dest="end", type=float, default=float("inf"))
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.file is None:
        parser.error("which file?")
    with open(arguments.file) as lines:
        activities = [row for row in read(lines)
                      if arguments.begin * 1e9 <= row[0] < arguments.end * 1e9]
    if arguments.steps:
        activities = last_steps(activities, arguments.steps)
    if not activities:
        sys.exit("no kernel ran then")
    show(activities)
    return None


if __name__ == "__main__":
    main()
