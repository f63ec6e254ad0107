#include "tests/kernels/layer_problem.h"

#include <cmath>

#include "tests/kernels/attention/reference_attention.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/reference_ops.h"
#include "tests/kernels/rows/kv_rows.h"

namespace tessera {
namespace {

Values rounded_if(const Values& values, std::optional<DType> dtype) {
  return dtype ? rounded(values, *dtype) : values;
}

// What a half reads where there is a norm in front of it.
Values normed(const Values& x, const Values& weight, const BlockSpec& block) {
  return block.norm == NormKind::kRmsNorm
             ? reference_rms_norm(x, weight, LayerProblem::kSizes.rms_norm_eps).values
             : reference_layer_norm(x, weight, LayerProblem::kSizes.rms_norm_eps).values;
}

Values product(const Values& x, const Values& weight, int64_t in_features, bool has_bias,
               const Values& bias) {
  Reference out = reference_linear(x, weight, in_features);
  if (has_bias) add_bias(out, bias);
  return out.values;
}

}  // namespace

LayerProblem::LayerProblem(DType weight_type, int64_t num_tokens) : num_tokens_(num_tokens) {
  const auto matrix = [&](int64_t rows, int64_t columns) {
    const double deviation = 1.5 / std::sqrt(static_cast<double>(columns));
    return rounded(random_.normal(rows * columns, deviation), weight_type);
  };
  const auto vector = [&](int64_t size) { return rounded(random_.normal(size), DType::kFloat32); };
  const int64_t gate_up_size = 2 * LayerProblem::kSizes.intermediate_size;
  const int64_t num_normed = LayerProblem::kSizes.num_heads + LayerProblem::kSizes.num_kv_heads;
  for (size_t i = 0; i < kNumLayers; ++i) {
    layers_.push_back(
        {.input_layernorm = vector(LayerProblem::kSizes.hidden_size),
         .qkv_proj = matrix(LayerProblem::kSizes.qkv_size(), LayerProblem::kSizes.hidden_size),
         .qkv_bias = vector(LayerProblem::kSizes.qkv_size()),
         .o_proj = matrix(LayerProblem::kSizes.hidden_size, LayerProblem::kSizes.query_size()),
         .o_bias = vector(LayerProblem::kSizes.hidden_size),
         .post_attention_layernorm = vector(LayerProblem::kSizes.hidden_size),
         .pre_feedforward_layernorm = vector(LayerProblem::kSizes.hidden_size),
         .gate_up_proj = matrix(gate_up_size, LayerProblem::kSizes.hidden_size),
         .gate_up_bias = vector(gate_up_size),
         .down_proj =
             matrix(LayerProblem::kSizes.hidden_size, LayerProblem::kSizes.intermediate_size),
         .down_bias = vector(LayerProblem::kSizes.hidden_size),
         .post_feedforward_layernorm = vector(LayerProblem::kSizes.hidden_size),
         .head_norm = vector(2 * LayerProblem::kSizes.head_dim),
         .projection_norm = vector(num_normed * LayerProblem::kSizes.head_dim)});
  }
  residual_ = vector(num_tokens * LayerProblem::kSizes.hidden_size);
  rope_tables_ = {rope_table(LayerProblem::kSizes.head_dim),
                  rope_table(LayerProblem::kSizes.head_dim, 1.25)};
  for (size_t j = 0; j < rope_tables_[1].size() / 2; ++j) rope_tables_[1][j] *= 0.5;
}

Values LayerProblem::reference(const BlockSpec& block, std::optional<DType> dtype) const {
  const auto round = [&](const Values& values) { return rounded_if(values, dtype); };
  Values x = residual_;
  const auto before_half = [&](const Values& norm) {
    return round(block.norm_placement == NormPlacement::kPost ? x : normed(x, norm, block));
  };
  const auto add = [&](Values half, const Values& norm) {
    if (block.norm_placement != NormPlacement::kPre) {
      half = reference_rms_norm(half, norm, LayerProblem::kSizes.rms_norm_eps).values;
    }
    for (size_t i = 0; i < x.size(); ++i) x[i] += block.residual_multiplier * half[i];
  };
  for (size_t i = 0; i < kNumLayers; ++i) {
    const LayerValues& layer = layers_[i];
    const BiasSpec& biases = block.biases;
    const Values attention_input = before_half(layer.input_layernorm);
    const Values qkv = round(product(attention_input, layer.qkv_proj,
                                     LayerProblem::kSizes.hidden_size, biases.qkv, layer.qkv_bias));
    const Values attention = round(attend(qkv, block, i, dtype));
    add(product(attention, layer.o_proj, LayerProblem::kSizes.query_size(), biases.output,
                layer.o_bias),
        layer.post_attention_layernorm);
    const Values input =
        block.is_parallel ? attention_input : before_half(layer.pre_feedforward_layernorm);
    const Values gate_up =
        round(product(input, layer.gate_up_proj, LayerProblem::kSizes.hidden_size, biases.gate_up,
                      layer.gate_up_bias));
    const Values hidden = round(
        reference_activate_mul(gate_up, LayerProblem::kSizes.intermediate_size, block.activation)
            .values);
    add(product(hidden, layer.down_proj, LayerProblem::kSizes.intermediate_size, biases.down,
                layer.down_bias),
        layer.post_feedforward_layernorm);
  }
  return x;
}

// The query heads of a token, or its key heads, as they are rotated.
Values LayerProblem::normed_projection(const Values& heads, const BlockSpec& block, size_t layer,
                                       bool is_query, std::optional<DType> dtype) const {
  if (block.qk_norm == QkNorm::kNone) return heads;
  const bool shares_weights = block.qk_norm == QkNorm::kPerHead;
  const Values& weights =
      shares_weights ? layers_[layer].head_norm : layers_[layer].projection_norm;
  const int64_t query_size =
      shares_weights ? LayerProblem::kSizes.head_dim : LayerProblem::kSizes.query_size();
  const auto middle = weights.begin() + query_size;
  const Values weight = is_query ? Values(weights.begin(), middle) : Values(middle, weights.end());
  return rounded_if(reference_qk_norm(heads, weight, LayerProblem::kSizes.head_dim, block.qk_norm,
                                      LayerProblem::kSizes.rms_norm_eps),
                    dtype);
}

Values LayerProblem::attend(const Values& qkv, const BlockSpec& block, size_t layer,
                            std::optional<DType> dtype) const {
  const LayerSpec& spec = block.layers[layer];
  const int64_t kv_size = LayerProblem::kSizes.num_kv_heads * LayerProblem::kSizes.head_dim;
  ReferenceSequence sequence;
  const auto append_rotated = [&](const Values& heads, int64_t token, double factor, Values& rows) {
    for (auto begin = heads.begin(); begin != heads.end(); begin += LayerProblem::kSizes.head_dim) {
      Values row(begin, begin + LayerProblem::kSizes.head_dim);
      if (spec.rope_table) {
        row = reference_rope(row, static_cast<int32_t>(token),
                             rope_tables_[static_cast<size_t>(*spec.rope_table)])
                  .values;
      }
      for (double& value : row) value *= factor;
      row = rounded_if(row, dtype);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  };
  const auto& [beta, original_context] = block.query_scaling;
  for (int64_t t = 0; t < num_tokens_; ++t) {
    const auto queries = qkv.begin() + t * LayerProblem::kSizes.qkv_size();
    const auto keys = queries + LayerProblem::kSizes.query_size();
    const auto values = keys + kv_size;
    const double factor =
        beta == 0.0 ? 1.0 : 1.0 + beta * std::log(1.0 + static_cast<double>(t / original_context));
    append_rotated(normed_projection({queries, keys}, block, layer, true, dtype), t, factor,
                   sequence.queries);
    append_rotated(normed_projection({keys, values}, block, layer, false, dtype), t, 1.0,
                   sequence.keys);
    sequence.values.insert(sequence.values.end(), values, values + kv_size);
  }
  const double usual_scale = 1.0 / std::sqrt(static_cast<double>(LayerProblem::kSizes.head_dim));
  return reference_attention(
             sequence, {.num_heads = LayerProblem::kSizes.num_heads,
                        .num_kv_heads = LayerProblem::kSizes.num_kv_heads,
                        .head_dim = LayerProblem::kSizes.head_dim,
                        .scale = block.attention_scale == 0.0 ? usual_scale : block.attention_scale,
                        .softcap = block.attention_softcap,
                        .causal = true,
                        .sliding_window = spec.sliding_window})
      .out.values;
}

}  // namespace tessera
