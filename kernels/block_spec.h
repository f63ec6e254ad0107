// How the blocks of a decoder compute, as data: each difference between model families is a field
// here. The defaults are Llama's block (Touvron et al. 2023). Sizes are not here; ModelConfig has
// them. Nor is anything that is gone once weights are loaded (model_loaders/weight_specs.h): norms
// that multiply by 1 + weight, factors of logits, which elements of a head RoPE turns together.
//
// Code that computes blocks states which fields it reads, and declines a model in which any other
// field differs from its default (first_difference in block_fields.h). So code that does not know a
// new field declines the models that use it.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace tessera {

enum class NormKind : uint8_t { kRmsNorm, kLayerNorm };

// Where a half of a block (attention, feed-forward network) has its norms.
enum class NormPlacement : uint8_t {
  kPre,         // x + half(norm(x)): Llama
  kPost,        // x + norm(half(x)): OLMo 2
  kPreAndPost,  // x + norm(half(norm(x))): Gemma 2
};

// What is normalised of queries and keys, before RoPE.
enum class QkNorm : uint8_t {
  kNone,
  kPerHead,           // RMSNorm over head_dim of each query and key head: Qwen 3
  kWholeProjection,   // RMSNorm over all query heads at once, and over all key heads: OLMo 2
  kLayerNormPerHead,  // LayerNorm over head_dim of each, each with its own weights: Command R+
};

enum class Activation : uint8_t { kSilu, kGeluTanh };

// Which products add a bias.
struct BiasSpec {
  bool qkv = false;
  bool output = false;
  bool gate_up = false;
  bool down = false;

  bool operator==(const BiasSpec&) const = default;
};

// A factor of queries that grows with their position, after RoPE (Ministral 3):
// 1 + beta * ln(1 + floor(position / original_max_position_embeddings))
struct QueryScalingSpec {
  double beta = 0.0;                             // 0: no factor
  int64_t original_max_position_embeddings = 0;  // tokens; above 0 where beta is not 0

  bool operator==(const QueryScalingSpec&) const = default;
};

// A feed-forward network of many experts, of which each token uses a few.
struct ExpertsSpec {
  int64_t num_experts = 0;
  int64_t experts_per_token = 0;

  bool operator==(const ExpertsSpec&) const = default;
};

struct LayerSpec {
  int64_t sliding_window = 0;             // tokens that a query sees, itself included; 0: all
  std::optional<int64_t> rope_table = 0;  // index of the model's table; nothing: no rotation

  bool operator==(const LayerSpec&) const = default;
};

struct BlockSpec {
  NormKind norm = NormKind::kRmsNorm;
  NormPlacement norm_placement = NormPlacement::kPre;
  bool is_parallel = false;  // both halves read the same norm, x + attention + ffn: Cohere
  QkNorm qk_norm = QkNorm::kNone;
  BiasSpec biases;
  Activation activation = Activation::kSilu;
  double attention_scale = 0.0;    // of query . key; 0: 1 / sqrt(head_dim)
  double attention_softcap = 0.0;  // scores become cap * tanh(score / cap); 0: as they are
  QueryScalingSpec query_scaling;
  bool has_attention_sinks = false;  // a learned logit per head in the softmax's denominator
  double embedding_multiplier = 1.0;
  double residual_multiplier = 1.0;  // of what each half adds
  double logit_softcap = 0.0;        // as attention_softcap
  std::optional<ExpertsSpec> experts;
  std::vector<LayerSpec> layers;  // one for each layer of the model

  bool operator==(const BlockSpec&) const = default;
};

// The factor of query . key: what the block says, or else 1 / sqrt(head_dim).
inline float attention_scale(const BlockSpec& block, int64_t head_dim) {
  return block.attention_scale > 0.0 ? static_cast<float>(block.attention_scale)
                                     : 1.0f / std::sqrt(static_cast<float>(head_dim));
}

}  // namespace tessera
