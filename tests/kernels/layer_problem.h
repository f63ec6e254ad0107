// Layers of a decoder with random weights, and what they compute in double precision for any block:
// as kernels/block_spec.h says it, not as kernels/layer_runner.cpp does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/block_sizes.h"
#include "kernels/tensor/dtype.h"
#include "tests/kernels/random_values.h"

namespace tessera {

using Values = std::vector<double>;

// The matrices and vectors of LayerWeights, all that any block has; matrices with their biases.
struct LayerValues {
  Values input_layernorm, qkv_proj, qkv_bias, o_proj, o_bias, post_attention_layernorm;
  Values pre_feedforward_layernorm, gate_up_proj, gate_up_bias, down_proj, down_bias;
  Values post_feedforward_layernorm;
  Values head_norm;        // qk_norm of QkNorm::kPerHead
  Values projection_norm;  // of its other kinds
};

// One sequence of so many tokens, all of them of this step.
class LayerProblem {
 public:
  static constexpr BlockSizes kSizes{.hidden_size = 256,
                                     .intermediate_size = 192,
                                     .num_heads = 4,
                                     .num_kv_heads = 2,
                                     .head_dim = 64,
                                     .rms_norm_eps = 1e-5f};
  static constexpr size_t kNumLayers = 2;
  static constexpr size_t kNumTables = 2;

  LayerProblem(DType weight_type, int64_t num_tokens);

  // The residual stream after the layers; with a `dtype`, intermediate results are rounded to it as
  // an implementation would.
  Values reference(const BlockSpec& block, std::optional<DType> dtype) const;

  int64_t num_tokens() const { return num_tokens_; }
  const std::vector<LayerValues>& layers() const { return layers_; }
  const Values& residual() const { return residual_; }
  // [2, head_dim / 2] each, kNumTables.
  const std::vector<Values>& rope_tables() const { return rope_tables_; }

 private:
  Values attend(const Values& qkv, const BlockSpec& block, size_t layer,
                std::optional<DType> dtype) const;
  Values normed_projection(const Values& heads, const BlockSpec& block, size_t layer, bool is_query,
                           std::optional<DType> dtype) const;

  RandomValues random_{3};
  int64_t num_tokens_;
  std::vector<LayerValues> layers_;
  Values residual_;
  std::vector<Values> rope_tables_;
};

}  // namespace tessera
