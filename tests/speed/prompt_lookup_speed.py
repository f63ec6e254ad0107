#!/usr/bin/env python3
"""What `--prompt-lookup auto` is worth: decoding with it and without it, on the demo model.

    prompt_lookup_speed.py [--tessera BIN] [--device cpu|cuda] [--threads N] [--repetitions N]
                            [--prompts N] [--kind PART_OF_ITS_NAME]

Four kinds of answers: summaries that quote their document, summaries in words of their own, short
answers about a document, and stories, which repeat nothing. Every prompt is answered in both ways
by turns, a process each time, so that a machine that slows down favours neither. Speeds are those
of each prompt's median; "from" and "to" are the least and the greatest ratio of one repetition of
all prompts. An answer that differs is refused.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "weights"))
from corpus.documents import DEFAULT_INSTRUCTION  # noqa: E402
from corpus.generic import generic_text  # noqa: E402

SEED = 777001  # of documents that the model was not trained on
STORIES = ["Tell me a story about a fox.", "Tell me a story about a ship and a girl.",
           "Write a poem about the sea.", "Tell me a long story.",
           "Tell me a story about a lantern."]  # fmt: skip
WAYS = ["off", "auto"]


def quoting_prompts(count):
    rng = random.Random(SEED)
    return [f"{DEFAULT_INSTRUCTION}\n\n{generic_text(rng)[0]}" for _ in range(count)]


def held_out_prompts(name, count):
    lines = (ROOT / "weights" / "held_out" / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line)["messages"][-1]["content"] for line in lines[:count]]


def answer(arguments, folder, prompt, way):
    """The text of the answer and its statistics."""
    (folder / "prompt.txt").write_text(prompt)
    command = [arguments.tessera, "generate", "-m", ROOT / "weights" / "demo", "--device",
               arguments.device, "--threads", str(arguments.threads), "-f", folder / "prompt.txt",
               "--prompt-lookup", way, "--stats-json", folder / "stats.json"]  # fmt: skip
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return result.stdout, json.loads((folder / "stats.json").read_text())


def measure(arguments, folder, kind, prompts):
    seconds = {way: [0.0] * arguments.repetitions for way in WAYS}  # of all prompts
    medians = dict.fromkeys(WAYS, 0.0)
    tokens = accepted = drafted = 0
    for prompt in prompts:
        times = {way: [] for way in WAYS}
        texts = set()
        for repetition in range(arguments.repetitions):
            for way in WAYS:
                text, stats = answer(arguments, folder, prompt, way)
                texts.add(text)
                times[way].append(stats["decode_seconds"])
                seconds[way][repetition] += stats["decode_seconds"]
        if len(texts) > 1:
            sys.exit(f"{kind}: the answers differ: {sorted(texts)}")
        for way in WAYS:
            medians[way] += statistics.median(times[way])
        tokens += stats["completion_tokens"] - 1  # the first is not decoded
        drafted += stats["drafted_tokens"]
        accepted += stats["accepted_tokens"]
    rates = {way: tokens / medians[way] for way in WAYS}
    ratios = [off / auto for off, auto in zip(seconds["off"], seconds["auto"])]
    print(f"{kind:24} {len(prompts):7} {tokens:7} {drafted:7} {accepted:8} {tokens - accepted:6} "
          f"{rates['off']:9.0f} {rates['auto']:9.0f} {rates['auto'] / rates['off']:6.3f} "
          f"{min(ratios):5.2f} {max(ratios):5.2f}",
          flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description="Decoding with drafts and without.")
    parser.add_argument("--tessera", type=pathlib.Path, default=ROOT / "build" / "tessera")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=20, help="of each kind")
    parser.add_argument("--kind", default="", help="only those whose name contains this")
    arguments = parser.parse_args()
    kinds = {"summaries that quote": quoting_prompts(arguments.prompts)}
    for name, kind in [("summaries_1k", "summaries of 1k"), ("summaries_4k", "summaries of 4k"),
                       ("questions", "questions")]:  # fmt: skip
        kinds[kind] = held_out_prompts(name, arguments.prompts)
    kinds["stories"] = STORIES
    kinds = {kind: prompts for kind, prompts in kinds.items() if arguments.kind in kind}
    if not kinds:
        parser.error(f"no kind is called {arguments.kind!r}")
    print(f"{'':24} prompts  tokens drafted accepted  steps off tok/s auto t/s  ratio  from    to")
    with tempfile.TemporaryDirectory() as folder:
        for kind, prompts in kinds.items():
            measure(arguments, pathlib.Path(folder), kind, prompts)


if __name__ == "__main__":
    main()
