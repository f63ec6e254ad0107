#!/usr/bin/env python3
"""tessera and its peer on the same machine, one after the other, as one table of ratios.

Runs `tessera bench` and transformers_peer.py on the same model folder. --json keeps all numbers.
"""

import argparse
import json
import pathlib
import subprocess
import sys

PROMPT_LENGTH = "512"  # tokens before decoding, where both decode


def run_json(command):
    print("$ " + " ".join(command), file=sys.stderr, flush=True)
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return json.loads(output[output.index("{"):])


def row(name, ours, theirs):
    """One line: our median ± half the range, the peer's, and the ratio of the medians."""
    median, spread = ours["median"], ours["spread"]  # no spread of one repetition
    line = f"{name:24} {median:12,.1f} " + (f"± {spread / 2:5.1%}" if spread is not None else " " * 8)
    if theirs is None:
        return line
    peer = theirs["tokens_per_second"]
    peer_spread = (theirs["highest"] - theirs["lowest"]) / 2 / peer
    return line + f" {peer:12,.1f} ± {peer_spread:5.1%} {median / peer:8.2f}"


def print_table(ours, peer):
    prefill = {entry["length"]: entry for entry in peer["prefill"]}
    decode = {entry["prompt_length"]: entry for entry in peer["decode"]}
    print(f"{ours['device']}, reads {ours['read_bytes_per_second'] / 1e9:,.0f} GB/s; tokens/s")
    print(f"{'':24} {'tessera':>20} {peer['peer']:>20} {'ratio':>8}")
    for result in ours["results"]:
        length = result["prompt_length"]
        print(row(f"prefill of {length}", result["prefill_tokens_per_second"],
                  prefill.get(length)))
        print(row(f"decode after {length}", result["decode_tokens_per_second"],
                  decode.get(length)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tessera", default="build/tessera", help="the command to measure")
    parser.add_argument("--model", required=True, help="model folder, see weights/make_random.py")
    parser.add_argument("--prefill", default="2048,8192", help="prompt lengths")
    parser.add_argument("--repetitions", default="5")
    parser.add_argument("--ctx-size", default="16384")
    parser.add_argument("--json", type=pathlib.Path, help="file for the numbers")
    arguments = parser.parse_args()

    ours = run_json([arguments.tessera, "bench", "-m", arguments.model, "--prompt-lengths",
                     f"{PROMPT_LENGTH},{arguments.prefill}", "--repetitions",
                     arguments.repetitions, "--ctx-size", arguments.ctx_size, "--json", "-"])
    peer_script = str(pathlib.Path(__file__).with_name("transformers_peer.py"))
    peer = run_json([sys.executable, peer_script, arguments.model, "--prefill", arguments.prefill,
                     "--prompt-length", PROMPT_LENGTH, "--repetitions", arguments.repetitions])
    if arguments.json:
        arguments.json.write_text(json.dumps({"tessera": ours, "transformers": peer}, indent=1))
    print_table(ours, peer)


if __name__ == "__main__":
    main()
