#!/usr/bin/env python3
"""Writes a batch file of requests with random token ids as prompts, to measure `tessera batch`.

    make_requests.py [--vocab 128256] [--count 1000] [--shared 0] [--long 0] [--most 1024] [--seeded] > requests.jsonl

Lengths are log-normal, as those of people's requests are: prompts of median 220 tokens (16 to
2,048), answers of median 180 (8 to 1,024); 1,000 of them have 349,298 prompt and 215,731 answer
tokens. They are the same in every run, and ends of sequences are ignored, so that every engine
computes the same amount.

    --shared N   every prompt begins with the same N tokens, as behind one instruction
    --long N     every 50th prompt has N tokens instead of its own number
    --most N     answers have at most N tokens
    --seeded     every second request draws its tokens at temperature 0.8 with a seed of its own
"""

import argparse
import json
import math
import random


def clipped_log_normal(source, median, sigma, low, high):
    return min(max(round(source.lognormvariate(math.log(median), sigma)), low), high)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=int, default=128256)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--shared", type=int, default=0)
    parser.add_argument("--long", type=int, default=0)
    parser.add_argument("--most", type=int, default=1024)
    parser.add_argument("--seeded", action="store_true")
    arguments = parser.parse_args()

    def ids(seed, count):
        source = random.Random(seed)
        return [source.randrange(100, arguments.vocab - 100) for _ in range(count)]

    lengths = random.Random(7)
    instruction = ids(6999, arguments.shared)
    for i in range(arguments.count):
        prompt = clipped_log_normal(lengths, 220, 1.0, 16, 2048)
        answer = clipped_log_normal(lengths, 180, 0.7, 8, 1024)
        if arguments.long and i % 50 == 25:
            prompt = arguments.long
        body = {"prompt": instruction + ids(7000 + i, prompt), "max_tokens": min(answer, arguments.most), "ignore_eos": True,
                "temperature": 0}
        if arguments.seeded and i % 2:
            body.update(temperature=0.8, seed=i)
        print(json.dumps({"custom_id": f"r{i}", "method": "POST", "url": "/v1/completions", "body": body}))


if __name__ == "__main__":
    main()
