"""The models of tests/golden/data: folder -> its config.json, and what else tells them apart.

Each model switches on what its family does differently from Llama, with sizes as small as that
allows. The seed of a model follows from its place in MODELS: new ones go to the end.
"""

from golden_families import (
    ABSENT,
    FAMILY_MODELS,
    ONE_KERNEL,
    SMALL,
    VOCAB_SIZE,
    family,
    without_absent,
)

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

# What differs from LLAMA. The original length of llama3_rope puts its three bands of wavelengths
# within the prompt.
LLAMA_MODELS = {
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
        "rope_theta": ABSENT,
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
        "head_dim": ABSENT,
        "use_sliding_window": False,
        "sliding_window": 16,
        "max_window_layers": 1,
    },
}

# What context_stretch_test.cpp makes of a model for 64 positions without scaling.
STRETCHED_MODELS = {
    "llama_stretched": family(
        "llama",
        "LlamaForCausalLM",
        SMALL,
        {
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 64,
            }
        },
    )
}

# Families, and options of families, that came after the models above had their seeds.
LATER_MODELS = {
    # Command R+: norms of heads, each with weights of its own, hence several of both kinds.
    "cohere_qk_norm": FAMILY_MODELS["cohere"]
    | {"head_dim": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "use_qk_norm": True},
    "ministral": family(
        "ministral",
        "MinistralForCausalLM",
        SMALL,
        {
            "layer_types": ["full_attention", "sliding_attention"],
            "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
            "rope_theta": ABSENT,
            "sliding_window": 20,
        },
    ),
    "olmo2_one_kernel": FAMILY_MODELS["olmo2"] | ONE_KERNEL,
    # Phi-3 mini without longrope: heads of 96, each layer with a window.
    "phi3_one_kernel": FAMILY_MODELS["phi3_long"]
    | ONE_KERNEL
    | {"head_dim": 96, "num_attention_heads": 8, "rope_scaling": None},
    # Sizes for which CUDA has no kernels: heads and intermediate features are filled up with zeros.
    "llama_padded": family(
        "llama",
        "LlamaForCausalLM",
        {"intermediate_size": 37, "num_attention_heads": 4, "num_key_value_heads": 2},
    ),
    "glm4_padded": FAMILY_MODELS["glm4"] | {"head_dim": 40, "intermediate_size": 100},
    # All is filled up, for a decode step that is one kernel.
    "qwen3_padded_one_kernel": FAMILY_MODELS["qwen3_one_kernel"]
    | {"head_dim": 112, "hidden_size": 224, "num_attention_heads": 3},
    "olmo2_padded_one_kernel": FAMILY_MODELS["olmo2"]
    | {"hidden_size": 224, "intermediate_size": 240, "num_attention_heads": 3},
    # Twelve query heads for a KV head, where attention's items have up to eight.
    "glm4_one_kernel": FAMILY_MODELS["glm4"] | ONE_KERNEL | {"num_attention_heads": 12},
}

MODELS = (
    {name: without_absent(LLAMA | changes) for name, changes in LLAMA_MODELS.items()}
    | FAMILY_MODELS
    | STRETCHED_MODELS
    | LATER_MODELS
)

# RoPE of kinds dynamic and longrope depends on a length: in transformers on that of the sequence at
# hand, in tessera on the context that the model is loaded with. Answers of these models are
# computed with so many tokens at hand (golden_test.cpp has the same table): a prompt that is
# followed by padding, which it cannot see.
CONTEXT_SIZES = {"llama_dynamic": 134, "phi3_short": 160, "phi3_long": 256}

NUM_SHARDS = {"sharded": 3}
# A token may come so often in an answer, on average; others 2 times. Where all that is added to the
# stream is as large as the token's own part, which is tied to the output, tokens tend to repeat; of
# cohere_qk_norm none of 1,000 seeds has livelier answers.
MAX_REPEATS = {"gemma2": 4, "gemma3_text": 4, "gemma3": 4, "cohere_qk_norm": 4}
# Models whose matrices hold numbers of 8 bits, which take half the room in a repository.
COARSE_MATRICES = MODELS.keys() - LLAMA_MODELS.keys()
# Values of model_type whose norms multiply by 1 + weight.
NORMS_AROUND_ZERO = {"gemma2", "gemma3_text"}
# What these multiply embeddings with: the square root of hidden_size; embedding_multiplier.
EMBEDDING_MULTIPLIERS = {"gemma2": 8.0, "gemma3_text": 8.0, "granite": 3.0}
# What a file has in front of the names of today's transformers: mistral3 of golden_families.py.
OLD_NAMES = {
    "mistral3": [
        ("model.language_model.", "language_model.model."),
        ("lm_head.", "language_model.lm_head."),
        ("model.vision_tower.", "vision_tower."),
        ("model.multi_modal_projector.", "multi_modal_projector."),
    ]
}
