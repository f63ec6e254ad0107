#!/usr/bin/env python3
"""How fast text becomes tokens on one core, in MB/s, beside Hugging Face's library.

    encode_speed.py ENCODE_SPEED... [--folder FOLDER] [--prepare] [--repetitions N] [--no-library]

Needs the package tokenizers. Each ENCODE_SPEED is a build's program (target encode_speed); several
take turns, so that a machine that slows down favours none. A result that is not the library's is
refused.

The text is English of the demo model's corpus in which every fourth longer word is a made-up one: a
few of them are frequent and most are rare, so that new words come as often as in real text. The
tokenizers are trained on other such text. FOLDER keeps both; --prepare makes them and stops, which
takes minutes. Everybody encodes the same documents one by one; every repetition begins with a fresh
tokenizer, which remembers no words.
"""

import argparse
import collections
import functools
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "weights"), str(ROOT / "tests" / "engine" / "text")]
import demo_corpus  # noqa: E402
from make_tokenizers import LLAMA3, split  # noqa: E402

TRAINING_BYTES, MEASURED_BYTES, DOCUMENT_BYTES = 24 << 20, 8 << 20, 8 << 10
MADE_UP_SHARE = 0.25  # of words of four letters or more
# A made-up word's rank is r or more with the probability (1 + r / COMMON)^-TAIL. Of 1.4 million words
# about 60,000 then differ, as in English prose, and 40,000 occur once, which is more than there.
COMMON, TAIL = 100, 0.3


SYLLABLES = [["b", "br", "c", "d", "f", "gr", "h", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "w"],
             ["a", "e", "i", "o", "u", "ea", "ou"], ["", "", "n", "r", "l", "s", "ct"]]  # fmt: skip
ENDINGS = ["", "", "", "s", "ed", "ing", "ly", "er", "tion", "ness"]


def made_up_word(rank):
    """Always the same for a rank."""
    rng = random.Random(rank)
    parts = [rng.choice(part) for _ in range(rng.choice([1, 2, 2, 3])) for part in SYLLABLES]
    return "".join(parts) + rng.choice(ENDINGS)


def with_made_up_words(rng, text):
    def replaced(match):
        if rng.random() >= MADE_UP_SHARE:
            return match[0]
        word = made_up_word(int(COMMON * ((1 - rng.random()) ** (-1 / TAIL) - 1)))
        return word.capitalize() if match[0][0].isupper() else word

    return re.sub("[A-Za-z]{4,}", replaced, text)


def documents(seed, size):
    """Texts of about DOCUMENT_BYTES, `size` bytes in all."""
    rng = random.Random(seed)
    result, parts, total = [], [], 0
    while total < size:
        parts.append(with_made_up_words(rng, demo_corpus.fix_articles(demo_corpus.plain_text(rng))))
        text = "\n\n".join(parts)
        if len(text) >= DOCUMENT_BYTES:
            result.append(text)
            total += len(text.encode())
            parts = []
    return result


def byte_pairs(texts):
    """In Llama 3's pipeline, with as many pieces."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = split(LLAMA3)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=128_000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))  # fmt: skip
    return tokenizer


def unigram(texts):
    """In the pipeline of T5 and ALBERT, roughly."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFKC(), normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")])  # fmt: skip
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(texts, trainers.UnigramTrainer(
        vocab_size=32_000, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False))  # fmt: skip
    return tokenizer


def prepare(folder):
    """The paths of the text and of tokenizers by name."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "documents.bin"
    if not text.exists():
        text.write_bytes(b"".join(struct.pack("<I", len(data)) + data for data in
                                  (document.encode() for document in documents(2, MEASURED_BYTES))))  # fmt: skip
    trained = {"128k byte pairs": byte_pairs, "32k unigram": unigram}
    paths = {name: folder / f"{name.replace(' ', '-')}.json" for name in trained}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        training_text = documents(1, TRAINING_BYTES)
        for name in missing:
            trained[name](training_text).save(str(paths[name]))
    return text, {**paths, "demo": ROOT / "weights" / "demo" / "tokenizer.json"}


def read_documents(path):
    data, at, texts = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        texts.append(data[at + 4 : at + 4 + size].decode())
        at += 4 + size
    return texts


def describe(texts):
    words = collections.Counter(word for text in texts for word in re.findall(r"\w+", text))
    total = sum(words.values())
    once = sum(1 for count in words.values() if count == 1)
    print(f"{sum(len(text.encode()) for text in texts) / 1e6:.1f} MB in {len(texts)} documents, {total} words, "
          f"{len(words)} different ones, of which {once} occur once")  # fmt: skip


def encode(program, tokenizer, text):
    """Seconds and the ids of each document."""
    with text.open("rb") as documents_file:
        lines = subprocess.run([program, tokenizer, "1"], stdin=documents_file, stdout=subprocess.PIPE,
                               check=True, text=True).stdout.splitlines()  # fmt: skip
    return float(lines[0]), [list(map(int, line.split())) for line in lines[1:]]


def encode_with_library(tokenizer, texts):
    library = Tokenizer.from_file(str(tokenizer))
    begin = time.perf_counter()
    encodings = [library.encode(text, add_special_tokens=False) for text in texts]
    return time.perf_counter() - begin, [encoding.ids for encoding in encodings]


def rate_text(seconds, num_bytes):
    rates = sorted(num_bytes / 1e6 / value for value in seconds)
    return f"{statistics.median(rates):.1f} ({rates[0]:.1f} to {rates[-1]:.1f})"


def measure(name, tokenizer, text, texts, arguments):
    runs = {program: functools.partial(encode, program, tokenizer, text) for program in arguments.programs}
    if not arguments.no_library:
        runs["library"] = functools.partial(encode_with_library, tokenizer, texts)
    seconds = {who: [] for who in runs}
    expected = None
    for _ in range(arguments.repetitions):
        for who, run in runs.items():
            taken, ids = run()
            if ids != (expected := expected or ids):
                sys.exit(f"{name}: {who} has other tokens than {next(iter(runs))}")
            seconds[who].append(taken)
    num_bytes = sum(len(text.encode()) for text in texts)
    print(f"{name}, {num_bytes / sum(map(len, expected)):.2f} bytes a token, MB/s: "
          + ", ".join(f"{who} {rate_text(taken, num_bytes)}" for who, taken in seconds.items()), flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="ENCODE_SPEED")
    parser.add_argument("--folder", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "tessera_encode_speed")  # fmt: skip
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--no-library", action="store_true")
    parser.add_argument("--only", help="the tokenizer with this in its name")
    arguments = parser.parse_args()
    text, tokenizers = prepare(arguments.folder)
    texts = read_documents(text)
    describe(texts)
    for name, tokenizer in tokenizers.items() if not arguments.prepare else ():
        if arguments.only is None or arguments.only in name:
            measure(name, tokenizer, text, texts, arguments)


if __name__ == "__main__":
    main()
