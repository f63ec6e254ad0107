#!/usr/bin/env python3
"""Says where the time of CUDA kernels goes, from what they noted themselves.

    read_clocks.py FILE          prints tables of a tessera-clocks.tsv
    read_clocks.py --self-test   tries it on readings made by hand

A build with -DTESSERA_CLOCKS=ON writes the file where a process runs that ends by itself, e.g.
`tessera bench`; it holds the last million readings, so the workload should end with what is to be
looked at. The first table has a line for each phase of each kernel: how long a block is in it,
over all blocks and launches. `detail` is a layer of the one-kernel step (all together with
--layers) or the input features of a product. The second table has the gaps: from the last block's
end of a kernel to the first block that has waited for it in the next one, below zero when kernels
overlap. All times in microseconds; the GPU's clock moves in steps, so look at means.
"""

import argparse
import collections
import csv
import statistics
import sys

# These prepare for data that the kernel before is still making.
BEFORE_DATA = {"set_up", "wait", "copy_weights"}


def read(lines):
    numbers = ("detail", "block", "begin_ns", "end_ns", "cycles")
    return [{**row, **{name: int(row[name]) for name in numbers}}
            for row in csv.DictReader(lines, delimiter="\t")]


def phase_rows(records, by_layer):
    """One row per kernel, detail and phase: number, mean, least and most of the times."""
    times = collections.defaultdict(list)
    for record in records:
        is_step = record["kernel"] == "decode_step"
        detail = record["detail"] if by_layer or not is_step else "-"
        times[record["kernel"], str(detail), record["phase"]].append(
            (record["end_ns"] - record["begin_ns"]) / 1000)
    return [(*key, len(values), statistics.fmean(values), min(values), max(values))
            for key, values in times.items()]


def launches(records):
    """(first begin after waiting, last end, name) of every launch, in order. A block's n-th record
    of a phase, counted from the end, belongs to the n-th launch: older ones may be half lost."""
    found = {}
    seen = collections.Counter()
    for record in sorted(records, key=lambda record: -record["end_ns"]):
        name = f"{record['kernel']} {record['detail']}"
        phase = (name, record["phase"], record["block"])
        launch = found.setdefault((name, seen[phase]), [float("inf"), 0])
        seen[phase] += 1
        if record["phase"] in BEFORE_DATA:
            continue
        launch[0] = min(launch[0], record["begin_ns"])
        launch[1] = max(launch[1], record["end_ns"])
    return sorted((begin, end, name) for (name, _), (begin, end) in found.items() if end > 0)


def gap_rows(records):
    """One row per pair of kernels that follow each other: number, mean, least and most."""
    gaps = collections.defaultdict(list)
    ordered = launches([record for record in records if record["kernel"] != "decode_step"])
    for (_, end, before), (begin, _, after) in zip(ordered, ordered[1:]):
        gaps[before, after].append((begin - end) / 1000)
    return [(*key, len(values), statistics.fmean(values), min(values), max(values))
            for key, values in gaps.items()]


def print_table(titles, rows):
    cells = [titles] + [[f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row]
                        for row in rows]
    print("| " + " | ".join(cells[0]) + " |")
    print("|" + "---|" * len(titles))
    for row in cells[1:]:
        print("| " + " | ".join(row) + " |")
    print()


def self_test():
    """Two blocks run qkv, then attention, twice."""
    lines = ["kernel\tphase\tdetail\tblock\tmultiprocessor\tbegin_ns\tend_ns\tcycles"]
    for start in (0, 10000):
        for block in (0, 1):
            at = start + 100 * block
            lines += [f"qkv\twait\t64\t{block}\t0\t{at}\t{at + 1000}\t9",
                      f"qkv\tmultiply\t64\t{block}\t0\t{at + 1000}\t{at + 3000}\t9",
                      f"attention_decode\tattention\t0\t{block}\t0\t{at + 3500}\t{at + 5000}\t9"]
    records = read(lines)
    phases = {row[:3]: row[3:] for row in phase_rows(records, False)}
    assert phases["qkv", "64", "multiply"] == (4, 2.0, 2.0, 2.0), phases
    assert phases["attention_decode", "0", "attention"] == (4, 1.5, 1.5, 1.5), phases
    gaps = {row[:2]: row[2:] for row in gap_rows(records)}
    assert gaps["qkv 64", "attention_decode 0"] == (2, 0.4, 0.4, 0.4), gaps
    assert gaps["attention_decode 0", "qkv 64"] == (1, 5.9, 5.9, 5.9), gaps


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--layers", action="store_true", help="a line per layer")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.file is None:
        parser.error("which file?")
    with open(options.file) as file:
        records = read(file)
    if not records:
        sys.exit(f"{options.file} has no readings")
    figures = ["times", "mean us", "min us", "max us"]
    print_table(["kernel", "detail", "phase", *figures], phase_rows(records, options.layers))
    print_table(["from", "to", *figures], gap_rows(records))


if __name__ == "__main__":
    main()
