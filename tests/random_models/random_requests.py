"""Random requests of a batch, and random settings of the command that answers them."""

import json

from random_weights import NUM_PIECES

COUNTS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 20, 40, 66, 80, 130]
# Around the sizes of pages, tiles and chunks, short ones first.
LENGTHS = [1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 66, 100, 127, 128, 129, 191, 193, 255, 256,
           257, 300, 511, 513, 700, 1023, 1025, 1500, 2049]  # fmt: skip
ANSWER_LENGTHS = [1, 2, 5, 12, 24]


def random_ids(chance, count):
    return [chance.randrange(NUM_PIECES) for _ in range(count)]


def random_prompt(chance, length, earlier):
    """A quarter begins like an earlier prompt, a fifth repeats a few tokens: what the prefix cache
    and drafts are for."""
    kind = chance.random()
    if kind < 0.25 and earlier:
        base = chance.choice(earlier)
        begin = base[: chance.randrange(1, len(base) + 1)]
        return begin + random_ids(chance, chance.choice([0, 1, 5, 70]))
    if kind < 0.45:
        cycle = random_ids(chance, chance.choice([1, 3, 10]))
        return (cycle * length)[:length]
    return random_ids(chance, length)


def random_bodies(chance, prompt_tokens):
    """Bodies of requests whose prompts have about `prompt_tokens` tokens together: few long ones or
    many short ones."""
    count = chance.choice(COUNTS)
    lengths = LENGTHS if count < 10 else LENGTHS[:16] if count > 40 else LENGTHS[:22]
    bodies = []
    for _ in range(count):
        length = min(chance.choice(lengths), max(1, prompt_tokens))
        prompt_tokens -= length
        prompt = random_prompt(chance, length, [body["prompt"] for body in bodies])
        bodies.append({"prompt": prompt, "max_tokens": chance.choice(ANSWER_LENGTHS)})
    return bodies


def write_requests(path, bodies):
    always = {"temperature": 0, "logprobs": 10, "ignore_eos": True}
    with open(path, "w") as file:
        for number, body in enumerate(bodies):
            request = {"custom_id": str(number), "method": "POST", "url": "/v1/completions",
                       "body": body | always}  # fmt: skip
            file.write(json.dumps(request) + "\n")


def random_settings(chance):
    """Flags that may not change what is answered, but for the type of keys and values."""
    flags = ["--max-sequences", chance.choice([1, 2, 3, 4, 5, 8, 8, 9, 16, 33, 64, 65, 100, 200]),
             "--kv-pages", chance.choice([1, 600]),
             "--prompt-lookup", chance.choice(["auto", "off"])]  # fmt: skip
    if chance.random() < 0.2:
        flags += ["--dtype", "float16"]
    if chance.random() < 0.5:
        flags += ["--page-size", chance.choice([16, 32, 64, 128, 256])]
    if chance.random() < 0.3:
        flags += ["--kv-dtype", "fp8"]
        if chance.random() < 0.3:
            flags += ["--attention-dtype", "fp8"]
    if chance.random() < 0.6:
        flags += ["--prefill-chunk", chance.choice([1, 7, 33, 64, 100, 128, 512])]
    if chance.random() < 0.3:
        flags += ["--no-prefix-cache"]
    if chance.random() < 0.12:
        flags += ["--batch-invariant"]
    return [str(flag) for flag in flags]
