"""A model folder for a config.json: random weights and a tokenizer in which each token is a piece
of text of its own, so that answers tell their tokens."""

import array
import functools
import json
import math
import random

NUM_PIECES = 4096
# A prime number: no row of a matrix begins where another one does.
NUM_POOLED_VALUES = 262147


def tokenizer():
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {f"[{number}]": number for number in range(NUM_PIECES)},
            "merges": [],
        },
    }


def mean_and_deviation(name, shape, config):
    """Of a tensor's values: such that what flows through the model stays about as large as 1, and
    that the probabilities of tokens differ."""
    adds_one_to_norms = config["model_type"].startswith("gemma")
    if name.endswith("bias"):
        return 0.0, 0.3
    if "norm" in name:
        return (0.0 if adds_one_to_norms else 1.0), 0.2
    if "lm_head" in name:
        return 0.0, 2.0 / math.sqrt(shape[1])
    if "embed" in name:
        is_small = config["tie_word_embeddings"] or adds_one_to_norms
        return 0.0, 2.0 / math.sqrt(shape[1]) if is_small else 1.0
    return 0.0, 1.0 / math.sqrt(shape[1])


@functools.cache
def pooled_values():
    chance = random.Random(1)
    return [chance.gauss(0.0, 1.0) for _ in range(NUM_POOLED_VALUES)]


@functools.lru_cache(maxsize=64)
def pooled_bfloat16(mean, deviation):
    """Normal values as bytes. The upper half of a float32 is a bfloat16."""
    values = array.array("f", [mean + deviation * value for value in pooled_values()])
    return array.array("H", values.tobytes())[1::2].tobytes()


def tensor_bytes(chance, name, shape, config):
    """As many values of the pool as the tensor has, over and over from a random one on: to draw
    each anew would take longer than all that is computed with them."""
    num_bytes = 2 * math.prod(shape)
    pool = pooled_bfloat16(*mean_and_deviation(name, shape, config))
    begin = 2 * chance.randrange(NUM_POOLED_VALUES)
    return (pool[begin:] + pool * (num_bytes // len(pool) + 1))[:num_bytes]


def write_weights(path, tensors, config, chance):
    header, end = {}, 0
    for name, shape in tensors:
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in tensors:
            file.write(tensor_bytes(chance, name, shape, config))


def write_model(folder, config, chance, expected_tensors):
    """`expected_tensors` tells name and shape of each tensor that the config.json of a folder asks
    for."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"})
    )
    write_weights(folder / "model.safetensors", expected_tensors(folder), config, chance)
