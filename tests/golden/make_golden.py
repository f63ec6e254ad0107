#!/usr/bin/env python3
"""Writes tests/golden/data: tiny random models and what transformers computes with them.

Each folder is a normal Hugging Face model folder plus golden.dat, the expected tokens and logits
(golden_data.h describes the format). transformers reads back the very folder it is compared on, in
float32 with eager attention and no KV cache, so config.json, weights and their rounding to 16 bits
are part of what is compared.

The data is checked in; run this again only to add a model. It needs torch, transformers and
sentencepiece, and gives the same bytes for the versions in data/made_with.json.
"""

import io
import json
import pathlib
import random
import shutil
import struct
import sys

import safetensors.torch
import sentencepiece
import torch
import transformers

DATA = pathlib.Path(__file__).parent / "data"
VOCAB_SIZE = 320  # 3 special, 256 bytes, 61 letters and merges
NUM_SPECIAL = 3  # <unk>, <s>, </s>

# (prompt length, answer length). The first crosses the 64-token pages and has its logits stored.
RUNS = [(70, 64), (3, 24), (33, 24), (64, 24)]
# Positions of run 0 whose logits are stored: regular ones, page boundaries, first and last.
LOGIT_POSITIONS = sorted({*range(0, 134, 9), 15, 16, 62, 63, 64, 69, 127, 128, 133})
# Top-2 margin that every greedy step must have, as a fraction of the largest logit. Far above the
# error of float32, so that a greedy answer is one answer.
MIN_MARGIN = 1e-3

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": VOCAB_SIZE,
}

# Folder -> what differs from LLAMA. The original length of llama3_rope puts its three bands of
# wavelengths within the prompt.
MODELS = {
    "gqa_d64": {"num_attention_heads": 4, "num_key_value_heads": 2, "torch_dtype": "float32"},
    "mha_d80": {"num_key_value_heads": 2, "head_dim": 80},
    "gqa_d128": {"head_dim": 128, "torch_dtype": "float16"},
    "tied": {"tie_word_embeddings": True, "torch_dtype": "float32"},
    "llama3_rope": {
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        }
    },
    "linear_rope": {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "rope_parameters": {
        "rope_theta": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "sharded": {"torch_dtype": "float16"},
    "sliding_window": {
        "architectures": ["MistralForCausalLM"],
        "model_type": "mistral",
        "sliding_window": 16,
    },
    # Sizes for which a decode step is one kernel on Hopper: multiples of 256.
    "one_kernel": {
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    # No head_dim: it is not hidden_size / num_attention_heads then. The window is switched off.
    "qwen3": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "head_dim": None,
        "use_sliding_window": False,
        "sliding_window": 16,
        "max_window_layers": 1,
    },
}
QWEN3_HEAD_DIM = 128  # the default of its config class
NUM_SHARDS = {"sharded": 3}


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


def random_weights(config, seed):
    """Weights by name, rounded to the checkpoint's dtype."""
    generator = torch.Generator().manual_seed(seed)

    def matrix(rows, columns, std):
        return torch.randn(rows, columns, generator=generator) * std

    def norm(size):
        return 1.0 + 0.1 * torch.randn(size, generator=generator)

    hidden, inner = config["hidden_size"], config["intermediate_size"]
    # Attention scores of the same size whatever the width: large ones amplify rounding beyond what
    # golden_test.cpp expects.
    reading = 0.2 * (LLAMA["hidden_size"] / hidden) ** 0.5
    head_dim = config.get("head_dim", QWEN3_HEAD_DIM)
    q_rows = config["num_attention_heads"] * head_dim
    kv_rows = config["num_key_value_heads"] * head_dim
    weights = {"model.embed_tokens.weight": matrix(VOCAB_SIZE, hidden, 0.3)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        weights |= {
            prefix + "input_layernorm.weight": norm(hidden),
            prefix + "self_attn.q_proj.weight": matrix(q_rows, hidden, reading),
            prefix + "self_attn.k_proj.weight": matrix(kv_rows, hidden, reading),
            prefix + "self_attn.v_proj.weight": matrix(kv_rows, hidden, reading),
            prefix + "self_attn.o_proj.weight": matrix(hidden, q_rows, 0.1),
            prefix + "post_attention_layernorm.weight": norm(hidden),
            prefix + "mlp.gate_proj.weight": matrix(inner, hidden, reading),
            prefix + "mlp.up_proj.weight": matrix(inner, hidden, reading),
            prefix + "mlp.down_proj.weight": matrix(hidden, inner, 0.1),
        }
        if config["model_type"] == "qwen3":
            for part in ("q_norm", "k_norm"):
                weights[f"{prefix}self_attn.{part}.weight"] = norm(head_dim)
    weights["model.norm.weight"] = norm(hidden)
    if not config["tie_word_embeddings"]:
        weights["lm_head.weight"] = matrix(VOCAB_SIZE, hidden, reading)
    dtype = getattr(torch, config["torch_dtype"])
    return {name: weight.to(dtype) for name, weight in weights.items()}


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


def write_model(folder, changes, seed, tokenizer):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = {key: value for key, value in (LLAMA | changes).items() if value is not None}
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
    write_weights(folder, random_weights(config, seed), NUM_SHARDS.get(folder.name, 1))


@torch.no_grad()
def run_greedy(model, prompt, num_answer):
    """Prompt and greedy answer, and the logits of every position of both."""
    tokens = list(prompt)
    for _ in range(num_answer):
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0]
        tokens.append(int(logits[-1].argmax()))
    return tokens, model(torch.tensor([tokens]), use_cache=False).logits[0]


def compute_golden(folder, seed):
    """(bytes of golden.dat, smallest margin), or None when an answer is too close or too dull."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    rng = random.Random(seed)
    body = b""
    min_margin = float("inf")
    for index, (num_prompt, num_answer) in enumerate(RUNS):
        prompt = [1] + [rng.randrange(NUM_SPECIAL, VOCAB_SIZE) for _ in range(num_prompt - 1)]
        tokens, logits = run_greedy(model, prompt, num_answer)
        top = logits.topk(2)
        margins = (top.values[:, 0] - top.values[:, 1]) / logits.abs().max()
        answer = tokens[num_prompt:]
        min_margin = min(min_margin, float(margins[num_prompt - 1 : -1].min()))
        if min_margin < MIN_MARGIN or min(answer) < NUM_SPECIAL:
            return None
        if len(set(answer)) < num_answer // 2:
            return None
        positions = LOGIT_POSITIONS if index == 0 else []
        body += struct.pack("<3i", num_prompt, len(tokens), len(positions))
        body += struct.pack("<f", float(logits.abs().max()))
        body += struct.pack(f"<{len(tokens)}i", *tokens)
        body += struct.pack(f"<{len(tokens)}i", *top.indices[:, 0].tolist())
        body += struct.pack(f"<{len(tokens)}f", *margins.tolist())
        body += struct.pack(f"<{len(positions)}i", *positions)
        body += logits[positions].contiguous().numpy().tobytes()
    return struct.pack("<2i", VOCAB_SIZE, len(RUNS)) + body, min_margin


def main():
    assert sys.byteorder == "little"
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    tokenizer = train_tokenizer()
    report = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sentencepiece": sentencepiece.__version__,
        "models": {},
    }
    for number, (name, changes) in enumerate(MODELS.items()):
        for seed in range(1000 * number, 1000 * (number + 1)):
            write_model(DATA / name, changes, seed, tokenizer)
            golden = compute_golden(DATA / name, seed)
            if golden is not None:
                break
        else:
            sys.exit(f"{name}: no seed gives clear answers")
        content, min_margin = golden
        (DATA / name / "golden.dat").write_bytes(content)
        report["models"][name] = {"seed": seed, "min_margin": round(min_margin, 5)}
        print(f"{name}: seed {seed}, smallest margin {min_margin:.2e}", flush=True)
    write_json(DATA / "made_with.json", report)


if __name__ == "__main__":
    main()
