#!/usr/bin/env python3
"""Summarizes held-out reports with `tessera summarize`, for score_demo.py to count the facts found.

  python3 weights/summarize_demo.py --tessera build/tessera --set 1k --set 48k -o results
  python3 weights/score_demo.py results/*.results.jsonl --expected results/expected.jsonl

The sets 1k, 4k and 12k are those of held_out/summaries_*.jsonl and fit the model's context. The
others are written anew from a seed and the same grammar, as they are large; tessera reads them in
chunks. Flags for it may follow behind --.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from random import Random

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import demo_corpus  # noqa: E402
from corpus import documents  # noqa: E402
from score_demo import read_lines  # noqa: E402

SEED = 20260201
# Documents, about how many tokens each has, and facts of the first; each other has one more.
LONG_SETS = {"48k": (6, 48000, 6), "200k": (3, 200000, 9)}
HELD_OUT_SETS = ["1k", "4k", "12k"]


def held_out_documents(name):
    """Yields (custom id, text, expected strings) of a committed set."""
    expected = {line["custom_id"]: line["expected"] for line in read_lines(os.path.join(HERE, "held_out", "expected.jsonl"))}
    for request in read_lines(os.path.join(HERE, "held_out", f"summaries_{name}.jsonl")):
        text = request["messages"][0]["content"].removeprefix(f"{documents.DEFAULT_INSTRUCTION}\n\n")
        yield request["custom_id"], text, expected[request["custom_id"]]


def long_documents(name):
    """The same for a set that is written anew: always the same texts."""
    count, tokens, fact_count = LONG_SETS[name]
    random = Random(SEED + tokens)
    for number in range(count):
        report = demo_corpus.draw_report(random, tokens, held_out=True, fact_count=fact_count + number)
        values = [demo_corpus.fix_articles(value) for value in report.values()]
        yield f"s{name}-{number + 1:03d}", demo_corpus.fix_articles(report.text), values


def summarize(arguments, text):
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        command = [arguments.tessera, "summarize", file.name, "-m", arguments.model, "--temp", "0",
                   "--json", "--quiet", *arguments.flags]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def result_line(custom_id, report):
    """In the form of `tessera batch`, with how the document was read."""
    choice = {"message": {"content": report["summary"]}, "finish_reason": report["calls"][-1]["finish_reason"]}
    return {"custom_id": custom_id, "response": {"body": {"choices": [choice]}}, "error": None, "plan": report["plan"],
            "answers": [call["text"] for call in report["calls"]]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", default=os.path.join(HERE, "..", "build", "tessera"))
    parser.add_argument("-m", "--model", default=os.path.join(HERE, "demo"))
    parser.add_argument("--set", dest="sets", action="append", choices=[*HELD_OUT_SETS, *LONG_SETS])
    parser.add_argument("--limit", type=int, help="only so many documents of each set")
    parser.add_argument("-o", "--output", required=True, help="folder")
    parser.add_argument("flags", nargs="*", help="for tessera")
    arguments = parser.parse_args()

    os.makedirs(arguments.output, exist_ok=True)
    expected_lines = []
    for name in arguments.sets or [*HELD_OUT_SETS, *LONG_SETS]:
        texts = held_out_documents(name) if name in HELD_OUT_SETS else long_documents(name)
        start, tokens, calls = time.time(), 0, 0
        with open(os.path.join(arguments.output, f"{name}.results.jsonl"), "w", encoding="utf-8") as file:
            for custom_id, text, expected in list(texts)[:arguments.limit]:
                report = summarize(arguments, text)
                assert not report["left_out"], f"{custom_id}: {report['left_out']}"
                tokens += report["plan"]["document_tokens"]
                calls += len(report["calls"])
                file.write(json.dumps(result_line(custom_id, report), ensure_ascii=False) + "\n")
                file.flush()
                expected_lines.append({"custom_id": custom_id, "kind": f"summary {name}", "expected": expected})
        print(f"{name}: {tokens} tokens, {calls} calls, {time.time() - start:.1f} s", flush=True)
        with open(os.path.join(arguments.output, "expected.jsonl"), "w", encoding="utf-8") as file:
            for line in expected_lines:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
