// What config.json says about a decoder-only model, in checked numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/block_spec.h"
#include "kernels/tensor/dtype.h"
#include "model_loaders/rope_table.h"

namespace tessera {

// Which elements of a head RoPE turns together, as the checkpoint has them. Kernels turn j with
// j + head_dim / 2; rows of other orders are exchanged while they are read (head_order.h).
struct RotaryLayout {
  int64_t dim = 0;              // the first of each head turn, an even number; 0: all
  bool is_interleaved = false;  // 2j with 2j + 1; else j with j + dim / 2

  bool operator==(const RotaryLayout&) const = default;
};

// What comes before the names of a language model's tensors where it is a part of a larger model.
enum class NamePrefix : uint8_t {
  kNone,           // model.layers.0, lm_head
  kLanguageModel,  // language_model.model.layers.0, language_model.lm_head: until transformers 4.51
  kModelLanguageModel,  // model.language_model.layers.0, lm_head: since
};

// A context longer than the one that a model was trained for (model_loaders/context_stretch.h).
struct ContextStretch {
  int64_t trained_context = 0;  // tokens: max_position_embeddings as config.json has it
  double factor = 1.0;  // YaRN's largest factor among the tables that were changed; 1: none was
};

// Sizes that may be larger in memory than in the checkpoint (padded_config.h).
struct PaddableSizes {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t head_dim = 0;

  bool operator==(const PaddableSizes&) const = default;
};

// Field names are those of config.json. All sizes are positive and checked against each other.
struct ModelConfig {
  std::string model_type;    // "llama", "mistral"; in a larger model, that of the language model
  std::string architecture;  // "LlamaForCausalLM"; in a larger model, that of the larger model
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // divides num_heads
  int64_t head_dim = 0;      // even
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;  // tokens; with dynamic RoPE, its factor times as many
  double rms_norm_eps = 1e-6;           // of LayerNorm too
  BlockSpec block;                      // how layers compute
  std::vector<RopeTable> rope_tables;   // of which LayerSpec::rope_table is an index
  RotaryLayout rotary;
  std::optional<ContextStretch> stretch;  // max_position_embeddings is then more than was trained
  double norm_offset = 0.0;               // norms multiply by this + weight
  double logit_multiplier = 1.0;        // of the products with the output matrix, before a soft cap
  std::optional<PaddableSizes> stored;  // nothing: the sizes above are those of the checkpoint
  bool ties_embeddings = false;
  bool embedding_is_lm_head = false;  // tied, and the checkpoint has it under that name alone
  bool is_untied = false;  // the config of a larger model says so: a missing lm_head ties nothing
  NamePrefix name_prefix = NamePrefix::kNone;
  std::optional<DType> dtype;           // as declared; the checkpoint's tensors decide
  std::vector<int64_t> eos_token_ids;   // from config.json; may be empty
  std::optional<int64_t> bos_token_id;  // from config.json

  PaddableSizes sizes() const { return {hidden_size, intermediate_size, num_heads, head_dim}; }
  PaddableSizes stored_sizes() const { return stored.value_or(sizes()); }

  // Elements of a head that RoPE turns.
  int64_t rotary_dim() const { return rotary.dim == 0 ? head_dim : rotary.dim; }
};

}  // namespace tessera
