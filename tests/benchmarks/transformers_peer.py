#!/usr/bin/env python3
"""Hugging Face transformers on one GPU, the peer that tessera is compared with.

Loads a model folder and prints one JSON object: prefill tokens/s at each length, and decode
tokens/s at batch 1 after a short prompt, with a static cache and torch.compile (CUDA graphs), the
fastest way transformers itself offers. Medians with the spread of the repetitions.
"""

import argparse
import json
import statistics
import time

import torch
from transformers import AutoModelForCausalLM, StaticCache


def seconds_of(work, repetitions):
    """Wall-clock seconds of each repetition, the device idle before and after."""
    times = []
    for _ in range(repetitions):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return times


def rates(tokens, times):
    return {"tokens_per_second": tokens / statistics.median(times),
            "lowest": tokens / max(times), "highest": tokens / min(times)}


@torch.inference_mode()
def prefill(model, length, repetitions):
    ids = torch.randint(3, model.config.vocab_size, (1, length), device="cuda")
    work = lambda: model(ids, logits_to_keep=1)
    seconds_of(work, 2)
    return {"length": length, **rates(length, seconds_of(work, repetitions))}


@torch.inference_mode()
def decode(model, prompt_length, num_tokens, repetitions):
    cache = StaticCache(config=model.config, max_cache_len=2048)
    ids = torch.randint(3, model.config.vocab_size, (1, prompt_length), device="cuda")
    model(ids, past_key_values=cache, logits_to_keep=1)
    step = torch.compile(model, mode="reduce-overhead", fullgraph=True)
    position = torch.tensor([prompt_length], device="cuda")
    token = ids[:, -1:].clone()

    def work():
        # The position stays: what a step costs does not depend on which slot it writes.
        for _ in range(num_tokens):
            logits = step(token, past_key_values=cache, cache_position=position).logits
            token.copy_(logits[:, -1:].argmax(-1))

    seconds_of(work, 2)
    return {"prompt_length": prompt_length, **rates(num_tokens, seconds_of(work, repetitions))}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="model folder")
    parser.add_argument("--prefill", default="2048,8192,32768", help="prompt lengths")
    parser.add_argument("--prompt-length", type=int, default=512, help="tokens before decoding")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--no-decode", action="store_true",
                        help="prefill only: compiling the model takes most of a minute")
    arguments = parser.parse_args()

    model = AutoModelForCausalLM.from_pretrained(
        arguments.model, dtype=torch.bfloat16, attn_implementation="sdpa", device_map="cuda").eval()
    result = {"peer": "transformers", "torch": torch.__version__,
              "prefill": [prefill(model, int(length), arguments.repetitions)
                          for length in arguments.prefill.split(",")],
              "decode": [] if arguments.no_decode
              else [decode(model, arguments.prompt_length, 64, arguments.repetitions)]}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
