#!/usr/bin/env python3
"""Runs the tests of the command line: the tessera binary, seen from outside.

    run.py --tessera BIN [--model DIR] [--demo DIR] [PATTERN ...]

--model is a tiny random model with a context of at least 256 tokens, one of tests/golden unless
given; --demo is a trained chat model, without which the tests that need one are skipped. A PATTERN
keeps the tests whose name (file.Class.test) contains it.
"""

import argparse
import pathlib
import sys
import unittest

import support

TINY_MODEL = pathlib.Path(__file__).parent.parent / "golden" / "data" / "tied"


def main():
    parser = argparse.ArgumentParser(description="Tests of the tessera command line.")
    parser.add_argument("--tessera", required=True, type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, default=TINY_MODEL)
    parser.add_argument("--demo", type=pathlib.Path)
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    support.configure(arguments.tessera, arguments.model, arguments.demo)

    loader = unittest.TestLoader()
    if arguments.patterns:
        loader.testNamePatterns = [f"*{pattern}*" for pattern in arguments.patterns]
    suite = loader.discover(str(pathlib.Path(__file__).parent), pattern="test_*.py")
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    # Once more at the very end: a log is often shown by its last lines.
    for test, trace in result.failures + result.errors:
        print(f"FAILED: {test.id()}: {trace.splitlines()[-1][:200]}", file=sys.stderr)
    if result.testsRun == 0:
        sys.exit("no test has such a name")
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
