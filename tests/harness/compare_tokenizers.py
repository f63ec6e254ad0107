#!/usr/bin/env python3
"""Compares tokens and decoded text with Hugging Face's library, on random and adversarial strings.

    compare_tokenizers.py TOKENIZE_LINES [--count N] [--seed S] [FILE.json...]

Needs the package tokenizers. Without files those of tests/engine/text/data are compared. Added
tokens that are no pieces are taken out of the library's: here, text never becomes one.
"""

import argparse
import collections
import json
import pathlib
import random
import struct
import subprocess
import sys
import unicodedata

from tokenizers import Tokenizer

TEXT = pathlib.Path(__file__).resolve().parent.parent / "engine" / "text"
sys.path.append(str(TEXT))
from make_tokenizers import added_text, mixed_with, random_text, without_template_tokens  # noqa: E402


def tokenize(program, path, texts):
    """(ids, decoded) of each text."""
    raw = b"".join(struct.pack("<I", len(data)) + data for data in (text.encode() for text in texts))
    output = subprocess.run([program, path], input=raw, stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for _ in texts:
        (count,) = struct.unpack_from("<I", output, at)
        ids = list(struct.unpack_from(f"<{count}i", output, at + 4))
        at += 4 + 4 * count
        (size,) = struct.unpack_from("<I", output, at)
        yield ids, output[at + 4 : at + 4 + size].decode()
        at += 4 + size


def every_code_point():
    return [("alone", chr(code)) for code in range(0x110000)
            if not 0xD800 <= code < 0xE000 and unicodedata.category(chr(code)) != "Cn"]  # fmt: skip


def long_runs():
    """A million bytes and more that no pre-tokeniser, or hardly one, divides."""
    for unit in ["a", " ", "\n", "中", "!", "1", "aA", "\u0301", " x", "\t\n", "ab ", "'s", "😀"]:
        yield "1 MB", unit * (1_000_000 // len(unit.encode()))


def compare(program, path, kinds_and_texts, totals):
    result = json.loads(pathlib.Path(path).read_text())
    texts = [text for _, text in kinds_and_texts]
    oracle = Tokenizer.from_str(json.dumps(without_template_tokens(result)))
    answers = list(tokenize(program, path, texts))
    expected = [encoding.ids for encoding in oracle.encode_batch(texts, add_special_tokens=False)]
    decoded = oracle.decode_batch(expected)
    failures = 0
    for (kind, text), answer, ids, back in zip(kinds_and_texts, answers, expected, decoded):
        totals[kind] += 1
        if answer == (ids, back):
            continue
        failures += 1
        if failures <= 5:
            print(f"{path.name}: {kind}: {text[:80]!r}\n  expected {ids[:20]} {back[:60]!r}"
                  f"\n  got      {answer[0][:20]} {answer[1][:60]!r}")  # fmt: skip
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="every code point, 1 MB runs")
    arguments = parser.parse_args()
    files = arguments.files or sorted(path for path in (TEXT / "data").glob("*.json"))
    totals = collections.Counter()
    failures = 0
    for index, path in enumerate(files):
        rng = random.Random(arguments.seed * 1000 + index)
        contents = added_text(json.loads(path.read_text()))
        texts = [(kind, mixed_with(contents, rng, text))
                 for kind, text in (random_text(rng) for _ in range(arguments.count))]  # fmt: skip
        if arguments.long:
            texts += every_code_point() + list(long_runs())
        found = compare(arguments.program, path, texts, totals)
        print(f"{path.stem}: {len(texts)} strings, {found} differ", flush=True)
        failures += found
    print(dict(totals), failures, "differ")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
