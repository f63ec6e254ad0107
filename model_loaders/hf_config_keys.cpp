#include "model_loaders/hf_config_keys.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr std::string_view kIgnorableKeys[] = {
    // Bookkeeping of the library that wrote the file.
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_flash_attn_2_enabled",
    "_name_or_path", "auto_map", "is_llama_config", "tokenizer_class", "transformers.js_config",
    "transformers_version", "unsloth_fixed", "unsloth_version",
    // About images, of models of which the language model is a part.
    "boi_token_id", "boi_token_index", "eoi_token_id", "eoi_token_index", "image_token_id",
    "image_token_index", "mm_tokens_per_image", "multimodal_projector_bias", "projector_hidden_act",
    "spatial_merge_size", "vision_config", "vision_feature_layer",
    // Training.
    "attention_dropout", "residual_dropout", "embd_pdrop", "finetuning_task",
    "gradient_checkpointing", "hidden_dropout", "id2label", "initializer_range", "label2id",
    "max_sequence_length", "neftune_noise_alpha", "num_labels", "pretraining_tp", "problem_type",
    "resid_pdrop", "task_specific_params",
    // What the Python code returns and caches.
    "attn_implementation", "cache_implementation", "output_attentions", "output_hidden_states",
    "output_router_logits", "output_scores", "return_dict", "return_dict_in_generate",
    "torchscript", "use_bfloat16", "use_cache",
    // Fields of every config class of transformers that decoders do not use.
    "chunk_size_feed_forward", "cross_attention_hidden_size", "decoder_start_token_id",
    "is_decoder", "pad_token_id", "prefix", "pruned_heads", "sep_token_id", "tf_legacy_loss",
    "tie_encoder_decoder", "unk_token_id",
    // Sampling, from before generation_config.json.
    "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "max_length", "max_new_tokens", "min_length",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences",
    "remove_invalid_values", "repetition_penalty", "suppress_tokens", "temperature", "top_k",
    "top_p", "typical_p"};

}  // namespace

bool is_ignorable_config_key(std::string_view key) {
  return std::ranges::find(kIgnorableKeys, key) != std::end(kIgnorableKeys);
}

}  // namespace tessera
