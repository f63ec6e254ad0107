#!/usr/bin/env python3
"""Scores batch results against held_out/expected.jsonl; needs nothing but Python.

  python3 weights/score_demo.py RESULTS.jsonl… [-v]

A question counts as right if every expected string occurs in its answer; of a summary, each
expected value counts by itself (fact recall). Upper and lower case are the same.
"""

import argparse
import collections
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))


def contains(answer, expected):
    """Whether the answer holds the expected string, not merely as a part of a longer word or number."""
    pattern = r"\s+".join(re.escape(word) for word in expected.split())
    before = r"(?<!\w)" if expected[:1].isalnum() else ""
    if expected[:1].isdigit():
        before = r"(?<![\w-])(?<!\d[.,])"
    after = r"(?!\w)(?![.,]\d)" if expected[-1:].isalnum() else ""
    return re.search(before + pattern + after, answer, re.IGNORECASE) is not None


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def share(right, total):
    return f"{right:4d} of {total:4d}  {100 * right / total:6.2f} %" if total else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    parser.add_argument("--expected", default=os.path.join(HERE, "held_out", "expected.jsonl"))
    parser.add_argument("-v", "--verbose", action="store_true", help="list every miss")
    arguments = parser.parse_args()

    expected = {line["custom_id"]: line for line in read_lines(arguments.expected)}
    right, total, misses, unknown, cut_off = collections.Counter(), collections.Counter(), [], 0, 0
    for path in arguments.results:
        for result in read_lines(path):
            wanted = expected.get(result["custom_id"])
            if wanted is None:
                unknown += 1
                continue
            answer, reason = "", "error"
            if not result.get("error"):
                choice = result["response"]["body"]["choices"][0]
                answer, reason = choice["message"]["content"], choice.get("finish_reason")
            cut_off += reason == "length"
            found = [contains(answer, text) for text in wanted["expected"]]
            missing = [text for text, there in zip(wanted["expected"], found) if not there]
            kind = wanted["kind"]
            if kind.startswith("summary"):
                right[kind] += sum(found)
                total[kind] += len(found)
            else:
                right[kind] += all(found)
                total[kind] += 1
            if missing:
                misses.append((result["custom_id"], kind, missing, answer))

    if arguments.verbose:
        for custom_id, kind, missing, answer in misses:
            print(f"{custom_id} ({kind}) misses {missing}: {answer!r}")
    kinds = sorted(kind for kind in total if not kind.startswith("summary"))
    for kind in kinds:
        print(f"  {kind:14s} {share(right[kind], total[kind])}")
    if kinds:
        print(f"questions        {share(sum(right[k] for k in kinds), sum(total[k] for k in kinds))}")
    for kind in sorted((kind for kind in total if kind.startswith("summary")), key=lambda name: int(name.split()[1][:-1])):
        print(f"fact recall {kind.split()[1]:4s} {share(right[kind], total[kind])}")
    if cut_off:
        print(f"{cut_off} answers reached their token limit")
    if unknown:
        print(f"{unknown} results are not in {arguments.expected}")


if __name__ == "__main__":
    main()
