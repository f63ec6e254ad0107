#include "kernels/layer_runner.h"

#include <algorithm>
#include <vector>

#include "kernels/backend_limits.h"
#include "kernels/block_fields.h"
#include "kernels/device.h"
#include "kernels/fused_operations.h"
#include "kernels/tensor/buffer.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

std::string layer_runner_problem(const BlockSpec& block) {
  BlockSpec computed;
  computed.attention_scale = block.attention_scale;
  computed.attention_softcap = block.attention_softcap;
  if (block.qk_norm == QkNorm::kPerHead) computed.qk_norm = block.qk_norm;
  computed.layers = block.layers;  // each with its window and its RoPE table
  return first_difference(block, computed);
}

LayerRunner::LayerRunner(Arena& arena, const BlockSpec& block, const BlockSizes& sizes,
                         const BackendLimits& limits, FusedOperations& operations)
    : block_(block), sizes_(sizes), fused_(operations), operations_(operations.operations()) {
  const std::string problem = layer_runner_problem(block);
  CHECK(problem.empty(), "this model's layers cannot be computed: nothing here knows their ",
        problem);
  const DType activation = operations_.activation_dtype();
  const int64_t tokens = limits.max_tokens;
  const Shape heads{tokens, sizes.num_heads, sizes.head_dim};
  normed_ = arena.take("normed", activation, {tokens, sizes.hidden_size});
  squares_ =
      arena.take("squares", DType::kFloat32, {tokens, PendingNorm::num_squares(sizes.hidden_size)});
  qkv_ = arena.take("qkv", activation, {tokens, sizes.qkv_size()});
  query_ = arena.take("query", activation, heads);
  attention_out_ = arena.take("attention out", activation, heads);
  gate_up_ = arena.take("gate and up", activation, {tokens, 2 * sizes.intermediate_size});
  hidden_ = arena.take("feed forward", activation, {tokens, sizes.intermediate_size});
  const size_t workspace_bytes = operations_.attention_workspace_bytes(limits);
  attention_workspace_ =
      arena.take("attention workspace", DType::kFloat32,
                 {static_cast<int64_t>(ceil_divide(workspace_bytes, sizeof(float)))});
  if (std::ranges::any_of(block.layers, [](const LayerSpec& layer) { return !layer.rope_table; })) {
    take_zero_frequencies(arena);
  }
}

void LayerRunner::take_zero_frequencies(Arena& arena) {
  const Shape shape{sizes_.head_dim / 2};
  zero_frequencies_ = arena.take("zero frequencies", DType::kFloat32, shape);
  if (zero_frequencies_.empty()) return;  // measuring
  std::vector<float> zeros(static_cast<size_t>(shape[0]));
  operations_.device().upload(zero_frequencies_,
                              {zeros.data(), DType::kFloat32, DeviceType::kCpu, shape});
  operations_.device().synchronize();  // before kernels read it early
}

const Tensor& LayerRunner::rope_table(const LayerStep& step, const LayerSpec& layer) const {
  return layer.rope_table ? step.rope_tables[static_cast<size_t>(*layer.rope_table)]
                          : zero_frequencies_;
}

PendingNorm LayerRunner::norm(const LayerStep& step) const {
  const int64_t num_tokens = step.residual.dim(0);
  return {.values = normed_.slice(0, num_tokens),
          .squares = squares_.slice(0, num_tokens),
          .epsilon = sizes_.rms_norm_eps};
}

void LayerRunner::begin(const LayerStep& step, const Tensor& norm_weight) const {
  fused_.begin_norm(norm(step), step.residual, norm_weight);
}

void LayerRunner::attention_block(const LayerStep& step, const LayerTensors& layer,
                                  const Tensor& next_norm) const {
  const int64_t num_tokens = step.residual.dim(0);
  const LayerSpec& spec = block_.layers.at(static_cast<size_t>(layer.index));
  const Tensor query = query_.slice(0, num_tokens);
  const Tensor out = attention_out_.slice(0, num_tokens);
  // Without weights there would be no norm, and nothing would say so.
  CHECK(layer.weights.qk_norm.empty() == (block_.qk_norm == QkNorm::kNone), "layer ", layer.index,
        layer.weights.qk_norm.empty() ? " lacks the weights of qk_norm"
                                      : " has weights of a qk_norm that its block has not");
  fused_.normed_linear_rope_store_kv({.query = query,
                                      .pages = layer.pages,
                                      .qkv = qkv_.slice(0, num_tokens),
                                      .positions = step.positions,
                                      .kv_slots = step.kv_slots,
                                      .inverse_frequencies = rope_table(step, spec),
                                      .qk_norm = layer.weights.qk_norm,
                                      .norm_epsilon = sizes_.rms_norm_eps},
                                     norm(step), layer.weights.qkv_proj);
  operations_.attention(out, {.query = query,
                              .pages = layer.pages,
                              .batch = step.attention,
                              .scale = attention_scale(block_, sizes_.head_dim),
                              .softcap = static_cast<float>(block_.attention_softcap),
                              .sliding_window = spec.sliding_window,
                              .workspace = attention_workspace_});
  add_to_residual(step, out.reshape({num_tokens, sizes_.query_size()}), layer.weights.o_proj,
                  next_norm);
}

void LayerRunner::feed_forward_block(const LayerStep& step, const LayerTensors& layer,
                                     const Tensor& next_norm) const {
  const int64_t num_tokens = step.residual.dim(0);
  const Tensor hidden = hidden_.slice(0, num_tokens);
  fused_.normed_linear_silu_mul(hidden, norm(step), layer.weights.gate_up_proj,
                                gate_up_.slice(0, num_tokens));
  add_to_residual(step, hidden, layer.weights.down_proj, next_norm);
}

// The end of a half, and the one place where devices would meet that divide a model among
// themselves: each then has some of the input features, and its product is a part of the sum. The
// sum over devices comes between the product and what follows, which is all of it at once here:
// the residual add and the next norm.
void LayerRunner::add_to_residual(const LayerStep& step, const Tensor& x,
                                  const WeightMatrix& weight, const Tensor& next_norm) const {
  if (next_norm.empty()) {
    operations_.linear_add(step.residual, x, weight);
  } else {
    fused_.linear_add_begin_norm(step.residual, norm(step), x, weight, next_norm);
  }
}

}  // namespace tessera
