#!/usr/bin/env python3
"""tessera and its peer on the same machine, one after the other, as one table of ratios.

Runs `tessera bench` and transformers_peer.py on the same model folder and prints what BENCHMARKS.md
shows. --json keeps the numbers for plot.py.
"""

import argparse
import json
import pathlib
import subprocess
import sys


def run_json(command):
    print("$ " + " ".join(command), file=sys.stderr, flush=True)
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return json.loads(output[output.index("{"):])


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
                     "512," + arguments.prefill, "--repetitions", arguments.repetitions, "--ctx-size",
                     arguments.ctx_size, "--json", "-"])
    peer_script = str(pathlib.Path(__file__).with_name("transformers_peer.py"))
    peer = run_json([sys.executable, peer_script, arguments.model, "--prefill", arguments.prefill,
                     "--repetitions", arguments.repetitions])
    if arguments.json:
        arguments.json.write_text(json.dumps({"tessera": ours, "transformers": peer}, indent=1))
    print(json.dumps(ours, indent=1))
    print(json.dumps(peer, indent=1))


if __name__ == "__main__":
    main()
