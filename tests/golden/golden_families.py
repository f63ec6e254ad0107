"""A config.json for each family that golden_models.py has beside Llama."""

VOCAB_SIZE = 320  # 3 special, 256 bytes, 61 letters and merges

ABSENT = object()  # the value of a key that is not written

# What the families below have in common.
TINY = {
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
    "vocab_size": VOCAB_SIZE,
}

# Sizes of a model whose decode step is one kernel on Hopper.
ONE_KERNEL = {"hidden_size": 256, "intermediate_size": 256}

# RoPE that is stretched from 64 positions to 256. The ramp begins at the fourth frequency.
YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 4.0,
    "beta_slow": 1.0,
}

# A vision tower and a projector that nobody asks for anything.
TINY_VISION = {
    "hidden_size": 8,
    "image_size": 28,
    "intermediate_size": 8,
    "num_attention_heads": 1,
    "num_hidden_layers": 1,
    "patch_size": 14,
}


def without_absent(config):
    return {key: value for key, value in config.items() if value is not ABSENT}


def family(model_type, architecture, *changes):
    """A whole config.json: TINY with `changes`, later ones first."""
    config = {"architectures": [architecture], "model_type": model_type, **TINY}
    for change in changes:
        config |= change
    return without_absent(config)


def text_part(model_type, *changes):
    """The config of the language model within a larger model: it names no architecture."""
    config = family(model_type, "", *changes)
    del config["architectures"]
    return config


def longrope(num_frequencies):
    """Factors that rise from 1: by a sixth and, beyond the original length, fivefold in all."""
    steps = [j / (num_frequencies - 1) for j in range(num_frequencies)]
    return {
        "type": "longrope",
        "short_factor": [round(1.0 + step / 6.0, 4) for step in steps],
        "long_factor": [round(1.0 + 4.0 * step * step, 4) for step in steps],
    }


SMALL = {"hidden_size": 32, "head_dim": 64}  # an explicit head_dim that nothing implies

FAMILY_MODELS = {
    "llama_biases": family(
        "llama", "LlamaForCausalLM", SMALL, {"attention_bias": True, "mlp_bias": True}
    ),
    "llama_yarn": family("llama", "LlamaForCausalLM", SMALL, {"rope_scaling": YARN}),
    # theta is small enough for growth to show within two layers.
    "llama_dynamic": family(
        "llama",
        "LlamaForCausalLM",
        SMALL,
        {
            "max_position_embeddings": 64,
            "rope_scaling": {"type": "dynamic", "factor": 4.0},
            "rope_theta": 500.0,
            "tie_word_embeddings": True,
        },
    ),
    "mistral_nemo": family(
        "mistral",
        "MistralForCausalLM",
        {
            "hidden_size": 32,
            "head_dim": 128,
            "rope_theta": 1000000.0,
            "sliding_window": None,
            "tie_word_embeddings": False,
        },
    ),
    "ministral3": family(
        "ministral3",
        "Ministral3ForCausalLM",
        SMALL,
        {
            "rope_theta": ABSENT,
            "rope_parameters": YARN
            | {
                "rope_theta": 10000.0,
                "original_max_position_embeddings": 32,
                "factor": 8.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.1,
            },
            "sliding_window": None,
        },
    ),
    # Weights named as in files of transformers 4. Nothing says whether the output matrix is tied:
    # the class of the language model does, and what the file holds.
    "mistral3": {
        "architectures": ["Mistral3ForConditionalGeneration"],
        "model_type": "mistral3",
        "image_token_index": 10,
        "multimodal_projector_bias": False,
        "projector_hidden_act": "gelu",
        "spatial_merge_size": 2,
        "text_config": text_part(
            "mistral", SMALL, {"sliding_window": None, "rope_theta": 1000000.0}
        ),
        "torch_dtype": "bfloat16",
        "vision_config": TINY_VISION | {"head_dim": 8, "model_type": "pixtral"},
        "vision_feature_layer": -1,
    },
    "qwen2": family(
        "qwen2",
        "Qwen2ForCausalLM",
        ONE_KERNEL,
        {
            "num_attention_heads": 4,
            "rope_theta": 1000000.0,
            "rms_norm_eps": 1e-6,
            "tie_word_embeddings": False,
            "use_sliding_window": False,
            "sliding_window": 16,
            "max_window_layers": 1,
        },
    ),
    "qwen2_window": family(
        "qwen2",
        "Qwen2ForCausalLM",
        {
            "num_hidden_layers": 3,
            "tie_word_embeddings": True,
            "use_sliding_window": True,
            "sliding_window": 16,
            "max_window_layers": 1,
        },
    ),
    "qwen3_one_kernel": family(
        "qwen3",
        "Qwen3ForCausalLM",
        ONE_KERNEL,
        {
            "attention_bias": False,
            "head_dim": 128,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
            "sliding_window": None,
        },
    ),
    "gemma2": family(
        "gemma2",
        "Gemma2ForCausalLM",
        {
            "attn_logit_softcapping": 4.0,
            "cache_implementation": "hybrid",
            "final_logit_softcapping": 1.2,
            "head_dim": 256,
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": 144,
            "rms_norm_eps": 1e-6,
            "sliding_window": 16,
        },
    ),
    "gemma3_text": family(
        "gemma3_text",
        "Gemma3ForCausalLM",
        {
            "attn_logit_softcapping": None,
            "cache_implementation": "hybrid",
            "final_logit_softcapping": None,
            "head_dim": 256,
            "hidden_act": ABSENT,
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": 168,
            "rms_norm_eps": 1e-6,
            "rope_local_base_freq": 500.0,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "rope_theta": 100000.0,
            "sliding_window": 16,
            "sliding_window_pattern": 2,
        },
    ),
    # Weights named as transformers 5 saves them.
    "gemma3": {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "model_type": "gemma3",
        "boi_token_index": 5,
        "eoi_token_index": 6,
        "image_token_index": 7,
        "mm_tokens_per_image": 4,
        "dtype": "bfloat16",
        "text_config": text_part(
            "gemma3_text",
            {
                "attention_bias": False,
                "head_dim": 64,
                "hidden_act": ABSENT,
                "hidden_activation": "gelu_pytorch_tanh",
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                "num_hidden_layers": 3,
                "query_pre_attn_scalar": 64,
                "rope_theta": ABSENT,
                "rope_parameters": {
                    "full_attention": {
                        "factor": 8.0,
                        "rope_theta": 100000.0,
                        "rope_type": "linear",
                    },
                    "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
                },
                "sliding_window": 24,
            },
        ),
        "tie_word_embeddings": True,
        "vision_config": TINY_VISION
        | {"model_type": "siglip_vision_model", "vision_use_head": False},
    },
    # Two sides of one RoPE: see CONTEXT_SIZES in golden_models.py.
    "phi3_short": family(
        "phi3",
        "Phi3ForCausalLM",
        {
            "attention_bias": False,
            "hidden_size": 128,
            "original_max_position_embeddings": 160,
            "partial_rotary_factor": 0.75,
            "rope_scaling": longrope(24),
            "sliding_window": 262144,
            "tie_word_embeddings": True,
        },
    ),
    "phi3_long": family(
        "phi3",
        "Phi3ForCausalLM",
        {
            "original_max_position_embeddings": 64,
            "rope_scaling": longrope(16),
            "sliding_window": 40,
            "tie_word_embeddings": False,
        },
    ),
    "smollm3": family(
        "smollm3",
        "SmolLM3ForCausalLM",
        ONE_KERNEL,
        {
            "attention_bias": False,
            "max_window_layers": 2,
            "mlp_bias": False,
            "no_rope_layer_interval": 2,
            "no_rope_layers": [1, 0],
            "num_attention_heads": 4,
            "rope_theta": 5000000.0,
            "sliding_window": None,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
        },
    ),
    "olmo2": family(
        "olmo2",
        "Olmo2ForCausalLM",
        SMALL,
        {
            "attention_bias": False,
            "rope_scaling": None,
            "rope_theta": 500000.0,
            "tie_word_embeddings": False,
        },
    ),
    # No layer_types: the last of four layers sees everything, with the stretched table.
    "olmo3": family(
        "olmo3",
        "Olmo3ForCausalLM",
        {
            "num_hidden_layers": 4,
            "rope_scaling": YARN | {"attention_factor": 1.2},
            "rope_theta": 500000.0,
            "sliding_window": 16,
            "tie_word_embeddings": False,
        },
    ),
    "granite": family(
        "granite",
        "GraniteForCausalLM",
        SMALL,
        {
            "attention_bias": False,
            "attention_multiplier": 0.09,
            "embedding_multiplier": 3.0,
            "logits_scaling": 8.0,
            "mlp_bias": False,
            "residual_multiplier": 0.6,
            "rope_scaling": None,
            "tie_word_embeddings": True,
        },
    ),
    "glm4": family(
        "glm4",
        "Glm4ForCausalLM",
        SMALL,
        {
            "attention_bias": True,
            "partial_rotary_factor": 0.5,
            "rms_norm_eps": 1.5625e-7,
            "tie_word_embeddings": False,
        },
    ),
    # As glm4, without norms after the halves; half of each head turns because the class says so.
    "glm": family(
        "glm",
        "GlmForCausalLM",
        SMALL,
        {"attention_bias": True, "rms_norm_eps": 1.5625e-7, "tie_word_embeddings": False},
    ),
    "cohere": family(
        "cohere",
        "CohereForCausalLM",
        {
            "attention_bias": False,
            "layer_norm_eps": 1e-5,
            "logit_scale": 0.0625,
            "rms_norm_eps": ABSENT,
            "use_qk_norm": False,
        },
    ),
    "cohere2": family(
        "cohere2",
        "Cohere2ForCausalLM",
        {
            "attention_bias": False,
            "layer_norm_eps": 1e-5,
            "logit_scale": 0.25,
            "num_hidden_layers": 3,
            "rms_norm_eps": ABSENT,
            "rope_theta": 50000,
            "sliding_window": 16,
            "sliding_window_pattern": 3,
        },
    ),
    "exaone4": family(
        "exaone4",
        "Exaone4ForCausalLM",
        SMALL,
        {
            "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
            "num_hidden_layers": 4,
            "rope_scaling": {
                "factor": 16.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 32,
                "rope_type": "llama3",
            },
            "sliding_window": 16,
            "sliding_window_pattern": "LLLG",
            "tie_word_embeddings": False,
        },
    ),
    "seed_oss": family(
        "seed_oss",
        "SeedOssForCausalLM",
        SMALL,
        {
            "attention_bias": True,
            "attention_out_bias": False,
            "mlp_bias": False,
            "rope_scaling": {"rope_type": "default"},
            "tie_word_embeddings": False,
        },
    ),
}
