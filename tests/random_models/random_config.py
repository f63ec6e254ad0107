"""A config.json of random sizes and options, of one of the families that tessera has.

Of two models in three, sizes are like those that people download, for which a GPU has its fastest
kernels. The others have odd ones.
"""

COMMON_HEAD_DIMS = [64, 64, 96, 128, 128, 128, 256]
ODD_HEAD_DIMS = [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256]
COMMON_HIDDEN_SIZES = [256, 512, 768, 1024, 1280, 1536, 2048, 2304, 2560, 3072]
ODD_HIDDEN_SIZES = [64, 96, 128, 192, 320, 576, 640, 960, 1152]
COMMON_INTERMEDIATE_SIZES = [256, 512, 768, 1280, 2048, 2816, 4096]
ODD_INTERMEDIATE_SIZES = [37, 64, 96, 100, 128, 344, 1000, 1001, 1368, 1536]
KV_HEADS = [1, 1, 2, 2, 4, 8]
HEADS_PER_KV_HEAD = [1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 12]
WINDOWS = [1, 16, 63, 64, 65, 100, 128, 500, 1024]
# The tokenizer has 4,096 tokens: the others are padding, as many models have it.
VOCAB_SIZES = [4096, 4096, 4099, 4160, 5003]

LINEAR = [{"rope_type": "linear", "factor": factor} for factor in (2.0, 4.0)]
DYNAMIC = [{"rope_type": "dynamic", "factor": 2.0}]
YARN = [{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}]
LLAMA3 = [
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 1024,
    }
]
NO_SCALING = [None]


def is_drawn(chance, probability):
    return chance.random() < probability


def rope_scaling(chance):
    kinds = [NO_SCALING, NO_SCALING, LINEAR, DYNAMIC, YARN, LLAMA3]
    return {"rope_scaling": chance.choice(chance.choice(kinds))}


def layer_types(chance, config):
    kinds = ["sliding_attention", "full_attention"]
    return {"layer_types": chance.choices(kinds, k=config["num_hidden_layers"])}


def window(chance):
    return {"sliding_window": chance.choice(WINDOWS)}


def window_or_none(chance):
    return {"sliding_window": chance.choice([None, *WINDOWS])}


def switched_window(chance):
    """What Qwen has, off unless a key says otherwise."""
    if not is_drawn(chance, 0.4):
        return {}
    layers = chance.choice([0, 1])
    return {"use_sliding_window": True, "max_window_layers": layers, **window(chance)}


def num_rotated_pairs(config):
    return int(config["head_dim"] * config.get("partial_rotary_factor", 1.0)) // 2


def longrope(config):
    pairs = range(num_rotated_pairs(config))
    return {
        "original_max_position_embeddings": 1024,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0 + 0.01 * pair for pair in pairs],
            "long_factor": [1.0 + 0.2 * pair for pair in pairs],
        },
    }


# --- what each family changes ---------------------------------------------------------------------


def change_llama(chance, config):
    config.update(rope_scaling(chance))
    config["attention_bias"] = is_drawn(chance, 0.2)
    config["mlp_bias"] = is_drawn(chance, 0.15)


def change_mistral(chance, config):
    config.update(rope_scaling(chance), **window_or_none(chance))


def change_ministral(chance, config):
    config.update(rope_scaling(chance), **window(chance), **layer_types(chance, config))


def change_ministral3(chance, config):
    del config["rope_theta"]
    config["sliding_window"] = None
    config["rope_parameters"] = YARN[0] | {
        "rope_theta": 10000.0,
        "original_max_position_embeddings": chance.choice([64, 1024]),
        "factor": 8.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": chance.choice([0.0, 0.1]),
    }


def change_qwen2(chance, config):
    config.update(rope_scaling(chance), **switched_window(chance))


def change_qwen3(chance, config):
    config.update(rope_scaling(chance), **switched_window(chance))
    config["attention_bias"] = is_drawn(chance, 0.2)


def change_gemma2(chance, config):
    head_dim = chance.choice([128, 256, 256]) if config["head_dim"] >= 64 else config["head_dim"]
    config.update(
        head_dim=head_dim,
        hidden_activation="gelu_pytorch_tanh",
        query_pre_attn_scalar=chance.choice([96, head_dim, 2 * head_dim]),
        attn_logit_softcapping=chance.choice([None, 20.0, 50.0]),
        final_logit_softcapping=chance.choice([None, 30.0]),
        **window(chance),
    )


def change_gemma3_text(chance, config):
    config.update(
        hidden_activation="gelu_pytorch_tanh",
        query_pre_attn_scalar=config["head_dim"],
        rope_local_base_freq=10000.0,
        rope_scaling=chance.choice([None, {"rope_type": "linear", "factor": 8.0}]),
        sliding_window_pattern=chance.choice([1, 2, 3]),
        **window(chance),
    )


def change_phi3(chance, config):
    if is_drawn(chance, 0.3):
        config["partial_rotary_factor"] = chance.choice([0.5, 0.75])
    if is_drawn(chance, 0.5):
        config.update(longrope(config))
    config.update(window_or_none(chance))
    imply_head_dim(config)


def change_smollm3(chance, config):
    config.update(rope_scaling(chance))
    config["no_rope_layers"] = chance.choices([0, 1], k=config["num_hidden_layers"])


def change_olmo2(chance, config):
    config.update(rope_scaling(chance))


def change_olmo3(chance, config):
    config.update(window(chance), **layer_types(chance, config))


def change_granite(chance, config):
    head_dim = config["head_dim"]
    config.update(
        embedding_multiplier=12.0,
        residual_multiplier=0.22,
        attention_multiplier=chance.choice([1 / head_dim, head_dim**-0.5]),
        logits_scaling=chance.choice([1.0, 2.0]),
        **rope_scaling(chance),
    )
    imply_head_dim(config)


def change_glm(chance, config):
    config.update(partial_rotary_factor=0.5, attention_bias=is_drawn(chance, 0.5))


def change_cohere(chance, config):
    config["use_qk_norm"] = is_drawn(chance, 0.5)
    change_both_coheres(chance, config)


def change_cohere2(chance, config):
    config.update(window(chance), sliding_window_pattern=chance.choice([1, 2]))
    change_both_coheres(chance, config)


def change_both_coheres(chance, config):
    del config["rms_norm_eps"]
    config.update(
        layer_norm_eps=1e-5, logit_scale=chance.choice([0.25, 1.0]), tie_word_embeddings=True
    )
    imply_head_dim(config)


def change_exaone4(chance, config):
    config.update(window(chance), sliding_window_pattern=4, **layer_types(chance, config))


def change_seed_oss(chance, config):
    config.update(rope_scaling(chance), mlp_bias=False)
    config["attention_bias"] = is_drawn(chance, 0.7)
    config["attention_out_bias"] = is_drawn(chance, 0.5)


def imply_head_dim(config):
    """What the config.json of a family says that has no key for it."""
    config["hidden_size"] = config["num_attention_heads"] * config.pop("head_dim")


# model_type -> the class of its models, and what changes their config.json.
FAMILIES = {
    "cohere": ("CohereForCausalLM", change_cohere),
    "cohere2": ("Cohere2ForCausalLM", change_cohere2),
    "exaone4": ("Exaone4ForCausalLM", change_exaone4),
    "gemma2": ("Gemma2ForCausalLM", change_gemma2),
    "gemma3_text": ("Gemma3ForCausalLM", change_gemma3_text),
    "glm": ("GlmForCausalLM", change_glm),
    "glm4": ("Glm4ForCausalLM", change_glm),
    "granite": ("GraniteForCausalLM", change_granite),
    "llama": ("LlamaForCausalLM", change_llama),
    "ministral": ("MinistralForCausalLM", change_ministral),
    "ministral3": ("Ministral3ForCausalLM", change_ministral3),
    "mistral": ("MistralForCausalLM", change_mistral),
    "olmo2": ("Olmo2ForCausalLM", change_olmo2),
    "olmo3": ("Olmo3ForCausalLM", change_olmo3),
    "phi3": ("Phi3ForCausalLM", change_phi3),
    "qwen2": ("Qwen2ForCausalLM", change_qwen2),
    "qwen3": ("Qwen3ForCausalLM", change_qwen3),
    "seed_oss": ("SeedOssForCausalLM", change_seed_oss),
    "smollm3": ("SmolLM3ForCausalLM", change_smollm3),
}


def choose_up_to(chance, most, sizes):
    return chance.choice([size for size in sizes if size <= most])


def random_sizes(chance, most_hidden):
    """The sizes of a model whose hidden_size is at most `most_hidden`, or, where the family has it
    follow from its heads, at most twice that."""
    is_odd = is_drawn(chance, 1 / 3)
    head_dim = chance.choice(ODD_HEAD_DIMS if is_odd else COMMON_HEAD_DIMS)
    hidden_sizes = ODD_HIDDEN_SIZES if is_odd else COMMON_HIDDEN_SIZES
    intermediate_sizes = ODD_INTERMEDIATE_SIZES if is_odd else COMMON_INTERMEDIATE_SIZES
    most_heads = 2 * most_hidden // head_dim
    num_kv_heads = choose_up_to(chance, most_heads, KV_HEADS)
    heads_per_kv_head = choose_up_to(chance, most_heads // num_kv_heads, HEADS_PER_KV_HEAD)
    return {
        "head_dim": head_dim,
        "hidden_size": choose_up_to(chance, most_hidden, hidden_sizes),
        "intermediate_size": choose_up_to(chance, 2 * most_hidden, intermediate_sizes),
        "num_attention_heads": num_kv_heads * heads_per_kv_head,
        "num_hidden_layers": chance.choice([1, 2, 2, 3]),
        "num_key_value_heads": num_kv_heads,
        "vocab_size": chance.choice(VOCAB_SIZES),
    }


def random_config(chance, most_hidden):
    model_type = chance.choice(list(FAMILIES))
    architecture, change = FAMILIES[model_type]
    config = {
        "architectures": [architecture],
        "model_type": model_type,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rms_norm_eps": chance.choice([1e-5, 1e-6]),
        "rope_theta": chance.choice([10000.0, 500000.0, 1000000.0]),
        "tie_word_embeddings": is_drawn(chance, 0.4),
        **random_sizes(chance, most_hidden),
    }
    change(chance, config)
    return config
