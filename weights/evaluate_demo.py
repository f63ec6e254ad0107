#!/usr/bin/env python3
"""Answers batch requests with PyTorch and transformers (greedy), in the results format of `tessera batch`.

  python3 weights/evaluate_demo.py weights/held_out/questions.jsonl -o results.jsonl

It is the reference road to the scores: score_demo.py reads these results and those of the engine.
"""

import argparse
import json
import os
import time

import sentencepiece
import torch
from transformers import LlamaForCausalLM

from demo_corpus import END, Encoder

HERE = os.path.dirname(os.path.abspath(__file__))


def batches(prompts, most_tokens):
    """Groups request numbers of similar prompt length, so that padding stays small."""
    group = []
    for number in sorted(range(len(prompts)), key=lambda n: len(prompts[n])):
        if group and (len(group) + 1) * len(prompts[number]) > most_tokens:
            yield group
            group = []
        group.append(number)
    if group:
        yield group


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("requests", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("-m", "--model", default=os.path.join(HERE, "demo"))
    parser.add_argument("--batch-tokens", type=int, default=65536, help="prompt tokens in one batch")
    arguments = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    processor = sentencepiece.SentencePieceProcessor(model_file=os.path.normpath(arguments.model) + "_tokenizer.model")
    encoder = Encoder(processor)
    end = processor.piece_to_id(END)
    # Processors without bf16 units compute the same weights faster in float32.
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = LlamaForCausalLM.from_pretrained(arguments.model, dtype=dtype).to(device).eval()
    requests = []
    for path in arguments.requests:
        with open(path, encoding="utf-8") as file:
            requests += [json.loads(line) for line in file if line.strip()]
    prompts = [encoder.prompt(request["messages"]) for request in requests]
    results, start = {}, time.time()
    for group in batches(prompts, arguments.batch_tokens):
        longest = max(len(prompts[n]) for n in group)
        ids = torch.tensor([[2] * (longest - len(prompts[n])) + prompts[n] for n in group], device=device)
        mask = torch.tensor([[0] * (longest - len(prompts[n])) + [1] * len(prompts[n]) for n in group], device=device)
        with torch.no_grad():
            output = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=max(requests[n]["max_tokens"] for n in group),
                                    eos_token_id=[end, 2], pad_token_id=2)
        for number, row in zip(group, output[:, longest:].tolist()):
            answer = row[:requests[number]["max_tokens"]]
            stops = [place for place, token in enumerate(answer) if token in (end, 2)]
            results[number] = (processor.decode(answer[:stops[0]] if stops else answer), "stop" if stops else "length")
    with open(arguments.output, "w", encoding="utf-8") as file:
        for number, request in enumerate(requests):
            text, reason = results[number]
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
            file.write(json.dumps({"custom_id": request["custom_id"], "response": {"body": {"choices": [choice]}}, "error": None}, ensure_ascii=False) + "\n")
    print(f"{len(requests)} requests in {time.time() - start:.1f} s on {device}")


if __name__ == "__main__":
    main()
