#!/usr/bin/env python3
"""Writes a model folder of random weights in the shape of a well-known model, for benchmarks.

  python3 weights/make_random.py --shape llama-3.1-8b OUT_DIR
  python3 weights/make_random.py --shape llama-3.2-1b --layers 4 OUT_DIR      only the first layers

The text such a model writes is noise; its speed and its memory are those of the real one. The
tokenizer is the demo model's, so prompts use low ids only. Needs the built command, which lists the
tensors that a config.json asks for, and numpy.
"""

import argparse
import json
import os
import shutil
import subprocess

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
SHARD_BYTES = 5_000_000_000
POOL_VALUES = 128 * 1024 * 1024


def llama3_scaling(factor):
    return {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}


LLAMA3 = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "max_position_embeddings": 131072,
          "rope_theta": 500000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
          "head_dim": 128, "tie_word_embeddings": False}
QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936, "max_position_embeddings": 40960,
         "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu", "attention_bias": False, "head_dim": 128,
         "num_key_value_heads": 8, "use_sliding_window": False}
GEMMA3 = {"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "rope_theta": 1000000.0,
          "rope_local_base_freq": 10000.0, "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 256,
          "query_pre_attn_scalar": 256, "sliding_window_pattern": 6, "tie_word_embeddings": True}
SMOLLM2 = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152, "max_position_embeddings": 8192,
           "rope_theta": 100000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
           "head_dim": 64, "tie_word_embeddings": True}
SHAPES = {
    "llama-3.2-1b": {**LLAMA3, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
                     "num_key_value_heads": 8, "head_dim": 64, "tie_word_embeddings": True, "rope_scaling": llama3_scaling(32.0)},
    "llama-3.1-8b": {**LLAMA3, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                     "num_key_value_heads": 8, "rope_scaling": llama3_scaling(8.0)},
    "llama-3.3-70b": {**LLAMA3, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
                      "num_key_value_heads": 8, "rope_scaling": llama3_scaling(8.0)},
    "mistral-7b": {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "vocab_size": 32768, "max_position_embeddings": 32768,
                   "rope_theta": 1000000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
                   "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                   "sliding_window": None, "tie_word_embeddings": False},
    "mistral-nemo-12b": {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "vocab_size": 131072,
                         "max_position_embeddings": 131072, "rope_theta": 1000000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu",
                         "hidden_size": 5120, "intermediate_size": 14336, "num_hidden_layers": 40, "num_attention_heads": 32,
                         "num_key_value_heads": 8, "head_dim": 128, "sliding_window": None, "tie_word_embeddings": False},
    "qwen2.5-7b": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 152064, "max_position_embeddings": 32768,
                   "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
                   "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": False},
    "qwen2.5-0.5b": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151936, "max_position_embeddings": 32768,
                     "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864,
                     "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "qwen3-0.6b": {**QWEN3, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
                   "tie_word_embeddings": True},
    "qwen3-8b": {**QWEN3, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
                 "tie_word_embeddings": False},
    "gemma-2-9b": {"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "vocab_size": 256000, "max_position_embeddings": 8192,
                   "rope_theta": 10000.0, "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 3584,
                   "intermediate_size": 14336, "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8,
                   "head_dim": 256, "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                   "sliding_window": 4096, "tie_word_embeddings": True},
    "gemma-3-1b": {**GEMMA3, "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4,
                   "num_key_value_heads": 1, "vocab_size": 262144, "max_position_embeddings": 32768, "sliding_window": 512},
    "gemma-3-270m": {**GEMMA3, "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 4,
                     "num_key_value_heads": 1, "vocab_size": 262144, "max_position_embeddings": 32768, "sliding_window": 512},
    # The language model alone: the folders that people download have a vision tower beside it.
    "gemma-3-4b": {**GEMMA3, "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "num_attention_heads": 8,
                   "num_key_value_heads": 4, "vocab_size": 262208, "max_position_embeddings": 131072, "sliding_window": 1024,
                   "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "glm-4-9b": {"architectures": ["Glm4ForCausalLM"], "model_type": "glm4", "vocab_size": 151552, "max_position_embeddings": 32768,
                 "rope_theta": 10000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 13696,
                 "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
                 "partial_rotary_factor": 0.5, "attention_bias": True, "tie_word_embeddings": False},
    # Invented factors of the real number: 3/4 of each head turns.
    "phi-4-mini": {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "vocab_size": 200064, "max_position_embeddings": 131072,
                   "original_max_position_embeddings": 4096, "rope_theta": 10000.0, "partial_rotary_factor": 0.75,
                   "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [1.0 + pair for pair in range(48)]},
                   "rms_norm_eps": 1e-5, "hidden_act": "silu", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
                   "num_attention_heads": 24, "num_key_value_heads": 8, "sliding_window": 262144, "tie_word_embeddings": True},
    "phi-3.5-mini": {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "vocab_size": 32064, "max_position_embeddings": 131072,
                     "original_max_position_embeddings": 4096, "rope_theta": 10000.0,
                     "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [1.0 + pair for pair in range(48)]},
                     "rms_norm_eps": 1e-5, "hidden_act": "silu", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
                     "num_attention_heads": 32, "num_key_value_heads": 32, "sliding_window": 262144, "tie_word_embeddings": False},
    "olmo-2-7b": {"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "vocab_size": 100352, "max_position_embeddings": 4096,
                  "rope_theta": 500000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu", "attention_bias": False, "hidden_size": 4096,
                  "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
                  "tie_word_embeddings": False},
    "smollm2-135m": {**SMOLLM2, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
                     "num_key_value_heads": 3},
    "smollm2-360m": {**SMOLLM2, "hidden_size": 960, "intermediate_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 15,
                     "num_key_value_heads": 5},
    "seed-oss-36b": {"architectures": ["SeedOssForCausalLM"], "model_type": "seed_oss", "vocab_size": 155136,
                     "max_position_embeddings": 524288, "rope_theta": 10000000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu",
                     "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 80,
                     "num_key_value_heads": 8, "head_dim": 128, "attention_bias": True, "attention_out_bias": False, "mlp_bias": False,
                     "tie_word_embeddings": False},
    "smollm3-3b": {"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "vocab_size": 128256,
                   "max_position_embeddings": 65536, "rope_theta": 5000000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu",
                   "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
                   "num_key_value_heads": 4, "no_rope_layer_interval": 4, "tie_word_embeddings": True},
}


def expected_tensors(tessera, folder):
    """(name, shape) of each tensor that the folder's config.json asks for, in the order of the model."""
    command = [tessera, "inspect", "-m", folder, "--expected-tensors", "--json"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [(tensor["name"], tensor["shape"]) for tensor in map(json.loads, lines)]


def to_bfloat16(values):
    """float32 values rounded to the nearest bf16, as raw 16-bit patterns."""
    bits = values.view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def random_pool(seed, count):
    """Normal(0, 0.02) values in bf16, drawn in pieces to keep memory small."""
    generator, pool = numpy.random.default_rng(seed), numpy.empty(count, numpy.uint16)
    for start in range(0, count, 1 << 22):
        size = min(1 << 22, count - start)
        pool[start:start + size] = to_bfloat16(generator.standard_normal(size, numpy.float32) * numpy.float32(0.02))
    return pool


def write_values(file, pool, start, count):
    """`count` values of the pool from `start` on, beginning again at its end as often as needed."""
    while count:
        size = min(count, len(pool) - start)
        file.write(pool[start:start + size].data)
        start, count = 0, count - size


def plan_shards(tensors):
    shards, size = [[]], 0
    for name, shape in tensors:
        bytes_needed = 2 * int(numpy.prod(shape, dtype=numpy.int64))
        if shards[-1] and size + bytes_needed > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append((name, shape, bytes_needed))
        size += bytes_needed
    return shards


def write_shard(path, tensors, pool, generator, norm_weight):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, size in tensors:
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    encoded = json.dumps(header, separators=(",", ":")).encode()
    # The values start at a multiple of 64 bytes, so a memory map of the file is aligned.
    encoded += b" " * (-(8 + len(encoded)) % 64)
    with open(path, "wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for name, shape, size in tensors:
            if name.endswith("norm.weight"):
                file.write(to_bfloat16(numpy.full(shape, norm_weight, numpy.float32)).data)
            else:
                # Drawing billions of normal numbers would take minutes. One pool serves all tensors,
                # each from its own random start, so no two tensors are equal and none is zero:
                # zeros would make the arithmetic of a GPU cooler and faster than it really is.
                write_values(file, pool, int(generator.integers(len(pool))), size // 2)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", required=True, choices=sorted(SHAPES))
    parser.add_argument("--layers", type=int, help="number of layers (default: all of the shape)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tessera", metavar="FILE", default=os.path.join(HERE, "..", "build", "tessera"),
                        help="the built command, which knows the tensors of a config.json (default: build/tessera)")
    parser.add_argument("output", metavar="OUT_DIR")
    arguments = parser.parse_args()
    if arguments.layers is not None and arguments.layers < 1:
        parser.error("--layers must be at least 1")

    config = dict(SHAPES[arguments.shape])
    if arguments.layers:
        config["num_hidden_layers"] = arguments.layers
    demo = os.path.join(HERE, "demo")
    with open(os.path.join(demo, "generation_config.json"), encoding="utf-8") as file:
        end_ids = json.load(file)["eos_token_id"]
    config.update({"torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": end_ids, "use_cache": True, "initializer_range": 0.02})

    os.makedirs(arguments.output, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(os.path.join(demo, name), os.path.join(arguments.output, name))
    write_json(os.path.join(arguments.output, "config.json"), config)
    write_json(os.path.join(arguments.output, "generation_config.json"), {"bos_token_id": 1, "eos_token_id": end_ids, "do_sample": False})

    shards = plan_shards(expected_tensors(arguments.tessera, arguments.output))
    total = sum(size for shard in shards for _, _, size in shard)
    pool = random_pool(arguments.seed, min(POOL_VALUES, total // 2))
    # Gemma's norms multiply by 1 + weight.
    norm_weight = 0.0 if config["model_type"].startswith("gemma") else 1.0
    generator, weight_map = numpy.random.default_rng(arguments.seed + 1), {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write_shard(os.path.join(arguments.output, name), tensors, pool, generator, norm_weight)
        weight_map.update({tensor: name for tensor, _, _ in tensors})
    write_json(os.path.join(arguments.output, "model.safetensors.index.json"), {"metadata": {"total_size": total}, "weight_map": weight_map})
    print(f"{arguments.output}: {total / 2e9:.2f} billion parameters, {total / 1e9:.2f} GB in {len(shards)} shards")


if __name__ == "__main__":
    main()
