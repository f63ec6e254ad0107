#!/usr/bin/env python3
"""The long form of fuzzing: builds the targets with Clang and libFuzzer and runs them.

    run.py [--runs N] [--seed S] [--build FOLDER] [TARGET...]

Each target (all of them unless some are named) reads N mutated inputs under the address and
undefined-behaviour sanitizers, with memory and time bounded. What is found is kept in
FOLDER/corpus, where the next run begins. The first input that a target answers wrongly ends that
target's run; the line printed for it names the file, and

    FOLDER/fuzz --target=TARGET FILE

shows it again. Exits with 1 when there was one.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent / "libfuzzer"
ROOT = SOURCE.parents[2]
# Left out for speed: deep stack traces of every allocation, and looking for stack frames that are
# used after their function returned, which doubles the time of a run that ends in an exception.
ENVIRONMENT = {
    "ASAN_OPTIONS": "malloc_context_size=4:quarantine_size_mb=16:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TMPDIR": "/dev/shm",  # conversations are saved and synchronised thousands of times a second
}
# What libFuzzer and the sanitizers print.
PATTERNS = {
    "runs": r"number_of_executed_units: +(\d+)",
    "rate": r"average_exec_per_sec: +(\d+)",
    "edges": r"cov: (\d+)",
    "memory": r"peak_rss_mb: +(\d+)",
    "reason": r"(?:what\(\)|runtime error|ERROR): *(.*)",
    "file": r"Test unit written to (\S+)",
}


def build(folder):
    """Returns the size limit of each target's inputs, by name, in bytes."""
    configure = ["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja"]
    if not (folder / "build.ninja").exists():
        configure += ["-DCMAKE_CXX_COMPILER=clang++-16"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder], check=True, stdout=sys.stderr)
    written = subprocess.run([folder / "fuzz", f"--write={folder / 'corpus'}"], check=True,
                             capture_output=True, text=True).stdout
    return {name: int(size) for name, size in map(str.split, written.splitlines())}


def run(folder, target, max_bytes, options):
    """Returns what a person wants to know of one target's run, and whether it went well."""
    corpus = folder / "corpus"
    command = [folder / "fuzz", f"--target={target}", f"-runs={options.runs}",
               f"-seed={options.seed}", f"-max_len={max_bytes}", f"-dict={corpus / target}.dict",
               "-rss_limit_mb=1024", "-malloc_limit_mb=64", "-timeout=1200", "-print_final_stats=1",
               f"-artifact_prefix={folder / target}-", corpus / target]
    done = subprocess.run(command, env=os.environ | ENVIRONMENT, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, errors="replace")

    # The first reason is the cause; of the numbers the last one counts.
    found = {name: (re.findall(pattern, done.stderr) or ["?"])[0 if name == "reason" else -1]
             for name, pattern in PATTERNS.items()}
    line = ("{target:20} {runs:>9} runs {rate:>6} /s {edges:>5} edges {memory:>4} MiB"
            .format(target=target, **found))
    if done.returncode == 0:
        return line, True
    return "{}  {reason}; {file}".format(line, **found), False


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_200_000, help="of each target (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of libFuzzer's choices (%(default)s)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    options = parser.parse_args()
    sizes = build(options.build)
    if unknown := set(options.targets) - set(sizes):
        parser.error(f"no target {unknown.pop()}; there are: {' '.join(sizes)}")
    all_well = True
    print(f"seed {options.seed}", flush=True)
    for target in options.targets or sizes:
        line, well = run(options.build, target, sizes[target], options)
        print(line, flush=True)
        all_well = all_well and well
    sys.exit(0 if all_well else 1)


if __name__ == "__main__":
    main()
