"""Writes the trained demo model as a Hugging Face folder."""

import json
import math
import os

import demo_corpus
from demo_shape import (HEADS, HEAD_DIM, HIDDEN, INTERMEDIATE, KV_HEADS, LAYERS, MAX_POSITIONS, NORM_EPSILON,
                        ROPE_THETA, VOCABULARY)

SHARD_BYTES = 11_900_000
CHAT_TEMPLATE = ("{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
                 "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}")


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def export_settings(folder, processor):
    """Everything of the Hugging Face folder that does not depend on the training."""
    end = processor.piece_to_id(demo_corpus.END)
    write_json(os.path.join(folder, "config.json"), {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
        "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "intermediate_size": INTERMEDIATE, "hidden_act": "silu",
        "rms_norm_eps": NORM_EPSILON, "rope_theta": ROPE_THETA, "rope_scaling": None, "max_position_embeddings": MAX_POSITIONS,
        "attention_bias": False, "mlp_bias": False, "attention_dropout": 0.0, "tie_word_embeddings": True,
        "initializer_range": 0.02, "use_cache": True, "bos_token_id": 1, "eos_token_id": [end, 2]})
    write_json(os.path.join(folder, "generation_config.json"), {"bos_token_id": 1, "eos_token_id": [end, 2], "do_sample": False})

    def added(content):
        return {"content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}

    specials = ["<unk>", "<s>", "</s>", *demo_corpus.CONTROL_SYMBOLS]
    write_json(os.path.join(folder, "tokenizer_config.json"), {
        "tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True, "add_eos_token": False, "clean_up_tokenization_spaces": False, "model_max_length": MAX_POSITIONS,
        "bos_token": "<s>", "eos_token": demo_corpus.END, "unk_token": "<unk>",
        "added_tokens_decoder": {str(processor.piece_to_id(s)): added(s) for s in specials},
        "chat_template": CHAT_TEMPLATE})
    write_json(os.path.join(folder, "special_tokens_map.json"), {"bos_token": "<s>", "eos_token": demo_corpus.END, "unk_token": "<unk>"})


def export_weights(folder, weights):
    from safetensors.torch import save_file
    shards, sizes = [{}], [0]
    total = sum(w.numel() * 2 for w in weights.values())
    # Shards of about equal size, none above the limit.
    wanted = total / math.ceil(total / SHARD_BYTES)
    for name, weight in weights.items():
        size = weight.numel() * 2
        if sizes[-1] + size / 2 > wanted or sizes[-1] + size > SHARD_BYTES:
            shards.append({})
            sizes.append(0)
        shards[-1][name] = weight.contiguous()
        sizes[-1] += size
    weight_map = {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, os.path.join(folder, name), metadata={"format": "pt"})
        weight_map.update({tensor: name for tensor in shard})
    write_json(os.path.join(folder, "model.safetensors.index.json"), {"metadata": {"total_size": total}, "weight_map": weight_map})
