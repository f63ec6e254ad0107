#include "engine/model/kernel_config.h"

#include "kernels/backend.h"
#include "kernels/tensor/check.h"
#include "model_loaders/padded_config.h"

namespace tessera {

BlockSizes block_sizes(const ModelConfig& config) {
  return {.hidden_size = config.hidden_size,
          .intermediate_size = config.intermediate_size,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .rms_norm_eps = static_cast<float>(config.rms_norm_eps)};
}

ModelConfig kernel_config(const ModelConfig& config, const WantedSizes& wanted,
                          const Backend& backend) {
  const BlockSizes sizes = backend.computed_sizes({.block = config.block,
                                                   .sizes = block_sizes(config),
                                                   .vocab_size = config.vocab_size,
                                                   .page_size = wanted.page_size,
                                                   .kv_dtype = wanted.kv_dtype,
                                                   .max_sequences = wanted.max_sequences});
  return padded_config(config, {.hidden_size = sizes.hidden_size,
                                .intermediate_size = sizes.intermediate_size,
                                .num_heads = sizes.num_heads,
                                .head_dim = sizes.head_dim});
}

std::string padding_description(const ModelConfig& config) {
  const PaddableSizes own = config.stored_sizes();
  const PaddableSizes padded = config.sizes();
  std::string text;
  const auto add = [&](const char* name, int64_t size, int64_t larger) {
    if (size != larger) text += concat(text.empty() ? "" : ", ", name, ' ', size, " as ", larger);
  };
  add("hidden_size", own.hidden_size, padded.hidden_size);
  add("intermediate_size", own.intermediate_size, padded.intermediate_size);
  add("num_attention_heads", own.num_heads, padded.num_heads);
  add("head_dim", own.head_dim, padded.head_dim);
  return text;
}

}  // namespace tessera
