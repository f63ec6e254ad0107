#!/usr/bin/env python3
"""Writes tests/golden/data: tiny random models and what transformers computes with them.

Each folder is a normal Hugging Face model folder plus golden.dat, the expected tokens and logits
(golden_data.h describes the format). transformers reads back the very folder it is compared on, in
float32 with eager attention, so config.json, weights and their rounding to 16 bits are part of what
is compared. The KV cache only finds the answers: logits come from all tokens at once.

The data is checked in; run this again only to add a model. It needs torch, transformers and
sentencepiece, and gives the same bytes for the versions in data/made_with.json.
"""

import argparse
import io
import json
import pathlib
import random
import re
import shutil
import struct
import sys

import safetensors.torch
import sentencepiece
import torch
import transformers

import golden_models
from golden_models import LLAMA, MODELS, VOCAB_SIZE

DATA = pathlib.Path(__file__).parent / "data"
NUM_SPECIAL = 3  # <unk>, <s>, </s>

# (prompt length, answer length). The first crosses the 64-token pages and has its logits stored.
RUNS = [(70, 64), (3, 24), (33, 24), (64, 24)]
# Positions of run 0 whose logits are stored: regular ones, page boundaries, first and last.
LOGIT_POSITIONS = sorted({*range(0, 134, 9), 15, 16, 62, 63, 64, 69, 127, 128, 133})
# Top-2 margin that every greedy step must have, as a fraction of the largest logit. Far above the
# error of float32, so that a greedy answer is one answer.
MIN_MARGIN = 1e-3


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def train_tokenizer():
    """A byte-fallback BPE model of VOCAB_SIZE pieces, as bytes."""
    rng = random.Random(1)
    subjects = ["the small engine", "a patient reader", "our old clock", "the quiet river"]
    verbs = ["waits for", "remembers", "follows", "explains", "builds"]
    objects = ["a blue door", "every hidden page", "the next token", "six jars of quince", "zinc"]
    sentences = [
        f"{rng.choice(subjects)} {rng.choice(verbs)} {rng.choice(objects)}." for _ in range(400)
    ]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        vocab_size=VOCAB_SIZE,
        model_type="bpe",
        byte_fallback=True,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


# The order in which the weights of a layer are drawn; those not named here follow by name.
DRAWN_FIRST = [
    "input_layernorm.weight",
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "post_attention_layernorm.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
    "self_attn.q_norm.weight",
    "self_attn.k_norm.weight",
]


def drawing_order(name):
    """Embeddings, layers, the final norm, the output matrix, what is not the language model."""
    if "vision_tower" in name or "multi_modal_projector" in name:
        return (4, 0, 0, name)
    layer = re.search(r"layers\.(\d+)\.(.*)", name)
    if layer is None:
        part = ["embed_tokens.weight", "", "norm.weight", "lm_head.weight"]
        return (next(i for i in (0, 2, 3) if name.endswith(part[i])), 0, 0, name)
    within = layer[2]
    place = DRAWN_FIRST.index(within) if within in DRAWN_FIRST else len(DRAWN_FIRST)
    return (1, int(layer[1]), place, name)


def standard_deviation(name, text_config):
    if name.endswith(("norm.weight", "o_proj.weight", "down_proj.weight")):
        return 0.1
    if name.endswith("bias"):
        return 0.3
    if name.endswith("embed_tokens.weight"):
        # Where a model multiplies embeddings, they are smaller: tied to large ones, it would repeat
        # its last token.
        return 0.3 / golden_models.EMBEDDING_MULTIPLIERS.get(text_config["model_type"], 1.0)
    # Attention scores of the same size whatever the width: large ones amplify rounding beyond what
    # golden_test.cpp expects.
    return 0.2 * (LLAMA["hidden_size"] / text_config["hidden_size"]) ** 0.5


def random_weights(config, shapes, seed, coarse_matrices):
    """A tensor for each name of `shapes`, rounded to the checkpoint's dtype."""
    generator = torch.Generator().manual_seed(seed)
    text_config = config.get("text_config", config)
    norm_mean = 0.0 if text_config["model_type"] in golden_models.NORMS_AROUND_ZERO else 1.0
    dtype = getattr(torch, config.get("torch_dtype", config.get("dtype")))

    def draw(name):
        values = torch.randn(*shapes[name], generator=generator)
        values = values * standard_deviation(name, text_config)
        if name.endswith("norm.weight"):
            return values + norm_mean
        return values.to(torch.float8_e4m3fn) if coarse_matrices else values

    return {name: draw(name).to(dtype) for name in sorted(shapes, key=drawing_order)}


def write_safetensors(path, weights):
    path.write_bytes(safetensors.torch.save(weights, {"format": "pt"}))


def write_weights(folder, weights, num_shards):
    if num_shards == 1:
        write_safetensors(folder / "model.safetensors", weights)
        return
    weight_map = {}
    for shard in range(num_shards):
        file_name = f"model-{shard + 1:05}-of-{num_shards:05}.safetensors"
        part = dict(list(weights.items())[shard::num_shards])
        write_safetensors(folder / file_name, part)
        weight_map |= {name: file_name for name in part}
    total = sum(weight.numel() * weight.element_size() for weight in weights.values())
    write_json(
        folder / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": weight_map},
    )


def model_class(config):
    return getattr(transformers, config["architectures"][0])


def checkpoint_shapes(folder, config):
    """Shape by name, as transformers names them, of the weights that a checkpoint holds."""
    full_config = transformers.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        weights = model_class(config)(full_config).state_dict()
    if full_config.get_text_config().tie_word_embeddings:
        del weights["lm_head.weight"]
    return {name: tuple(weight.shape) for name, weight in weights.items()}


def name_in_file(model, name):
    for today, old in golden_models.OLD_NAMES.get(model, []):
        if name.startswith(today):
            return old + name.removeprefix(today)
    return name


def write_model(folder, config, seed, tokenizer):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2})
    write_json(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": True,
            "add_eos_token": False,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "legacy": False,
            "tokenizer_class": "LlamaTokenizer",
        },
    )
    (folder / "tokenizer.model").write_bytes(tokenizer)
    coarse_matrices = folder.name in golden_models.COARSE_MATRICES
    weights = random_weights(config, checkpoint_shapes(folder, config), seed, coarse_matrices)
    weights = {name_in_file(folder.name, name): weight for name, weight in weights.items()}
    write_weights(folder, weights, golden_models.NUM_SHARDS.get(folder.name, 1))


def load_model(folder):
    config = json.loads((folder / "config.json").read_text())
    model, problems = model_class(config).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    assert not any(problems.values()), problems
    return model.eval()


@torch.no_grad()
def compute_logits(model, tokens, context_size):
    """Logits of every position of `tokens`, which the model sees followed by padding."""
    padding = [0] * (context_size - len(tokens))
    return model(torch.tensor([tokens + padding]), use_cache=False).logits[0, : len(tokens)]


@torch.no_grad()
def last_logits(model, tokens, context_size, cache):
    """Logits [1, vocab_size] after `tokens`, of which `cache` has the keys of some."""
    if context_size > 0:
        return compute_logits(model, tokens, context_size)[-1:]
    fresh = tokens[cache.get_seq_length() :]
    return model(torch.tensor([fresh]), past_key_values=cache, use_cache=True).logits[0, -1:]


def run_greedy(model, prompt, num_answer, context_size):
    """Prompt and greedy answer, the logits of every position of both; None for one too close."""
    tokens = list(prompt)
    cache = transformers.DynamicCache()
    for _ in range(num_answer):
        logits = last_logits(model, tokens, context_size, cache)
        if margins_of(logits)[-1] < MIN_MARGIN:
            return None
        tokens.append(int(logits[-1].argmax()))
    logits = compute_logits(model, tokens, context_size)
    assert tokens[len(prompt) :] == logits.argmax(-1)[len(prompt) - 1 : -1].tolist()
    return tokens, logits


def margins_of(logits):
    """By how much the likeliest token leads, as a fraction of the largest logit."""
    top = logits.topk(2).values
    return (top[:, 0] - top[:, 1]) / logits.abs().max()


def pack_run(num_prompt, tokens, logits, positions):
    body = struct.pack("<3i", num_prompt, len(tokens), len(positions))
    body += struct.pack("<f", float(logits.abs().max()))
    body += struct.pack(f"<{len(tokens)}i", *tokens)
    body += struct.pack(f"<{len(tokens)}i", *logits.topk(2).indices[:, 0].tolist())
    body += struct.pack(f"<{len(tokens)}f", *margins_of(logits).tolist())
    body += struct.pack(f"<{len(positions)}i", *positions)
    return body + logits[positions].contiguous().numpy().tobytes()


def compute_golden(folder, seed):
    """(bytes of golden.dat, smallest margin), or None when an answer is too close or too dull."""
    model = load_model(folder)
    context_size = golden_models.CONTEXT_SIZES.get(folder.name, 0)
    max_repeats = golden_models.MAX_REPEATS.get(folder.name, 2)
    rng = random.Random(seed)
    body = struct.pack("<2i", VOCAB_SIZE, len(RUNS))
    min_margin = float("inf")
    for index, (num_prompt, num_answer) in enumerate(RUNS):
        prompt = [1] + [rng.randrange(NUM_SPECIAL, VOCAB_SIZE) for _ in range(num_prompt - 1)]
        run = run_greedy(model, prompt, num_answer, context_size)
        if run is None:
            return None
        tokens, logits = run
        answer = tokens[num_prompt:]
        min_margin = min(min_margin, float(margins_of(logits)[num_prompt - 1 : -1].min()))
        if min_margin < MIN_MARGIN or min(answer) < NUM_SPECIAL:
            return None
        if len(set(answer)) < num_answer // max_repeats:
            return None
        body += pack_run(num_prompt, tokens, logits, LOGIT_POSITIONS if index == 0 else [])
    return body, min_margin


def make_model(data, name, tokenizer):
    """Writes the folder with the first seed that gives clear answers; its row of the report."""
    number = list(MODELS).index(name)
    for seed in range(1000 * number, 1000 * (number + 1)):
        write_model(data / name, MODELS[name], seed, tokenizer)
        golden = compute_golden(data / name, seed)
        if golden is None:
            continue
        content, min_margin = golden
        (data / name / "golden.dat").write_bytes(content)
        print(f"{name}: seed {seed}, smallest margin {min_margin:.2e}", flush=True)
        return {"seed": seed, "min_margin": round(min_margin, 5)}
    sys.exit(f"{name}: no seed gives clear answers")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="default: those without a folder")
    parser.add_argument("--data", type=pathlib.Path, default=DATA, help="where folders are written")
    return parser.parse_args()


def main():
    assert sys.byteorder == "little"
    arguments = parse_arguments()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    tokenizer = train_tokenizer()
    report = {"torch": torch.__version__, "transformers": transformers.__version__}
    report |= {"sentencepiece": sentencepiece.__version__, "models": {}}
    report_path = arguments.data / "made_with.json"
    if report_path.exists():
        old = json.loads(report_path.read_text())
        assert old | {"models": {}} == report, f"{report_path} names other versions"
        report = old
    missing = [name for name in MODELS if not (arguments.data / name / "golden.dat").exists()]
    for name in arguments.models or missing:
        report["models"][name] = make_model(arguments.data, name, tokenizer)
        write_json(report_path, report)


if __name__ == "__main__":
    main()
