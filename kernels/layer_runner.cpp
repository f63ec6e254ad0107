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

namespace {

bool has_pre_norms(const BlockSpec& block) { return block.norm_placement != NormPlacement::kPost; }
bool has_post_norms(const BlockSpec& block) { return block.norm_placement != NormPlacement::kPre; }

// What is there although the block has no place for it would be left out, and what is missing would
// not be missed, without any other sign.
void check_presence(const LayerTensors& layer, std::string_view name, const Tensor& tensor,
                    bool is_expected) {
  CHECK(tensor.empty() != is_expected, "layer ", layer.index, is_expected ? " lacks " : " has ",
        name, is_expected ? ", which its block has" : ", which its block has not");
}

}  // namespace

std::string layer_runner_problem(const BlockSpec& block) {
  BlockSpec computed;
  // What comes after a half is RMSNorm.
  if (!has_post_norms(block)) computed.norm = block.norm;
  computed.norm_placement = block.norm_placement;
  computed.is_parallel = block.is_parallel;
  computed.qk_norm = block.qk_norm;
  computed.biases = block.biases;
  computed.activation = block.activation;
  computed.attention_scale = block.attention_scale;
  computed.attention_softcap = block.attention_softcap;
  computed.query_scaling = block.query_scaling;
  computed.residual_multiplier = block.residual_multiplier;
  // These are not of layers; see Operations::embed and softcap.
  computed.embedding_multiplier = block.embedding_multiplier;
  computed.logit_softcap = block.logit_softcap;
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
  if (has_post_norms(block)) {
    half_out_ = arena.take("what a half adds", DType::kFloat32, {tokens, sizes.hidden_size});
  }
  const size_t workspace_bytes = operations_.attention_workspace_bytes(limits);
  attention_workspace_ =
      arena.take("attention workspace", DType::kFloat32,
                 {static_cast<int64_t>(ceil_divide(workspace_bytes, sizeof(float)))});
  if (std::ranges::any_of(block.layers, [](const LayerSpec& layer) { return !layer.rope_table; })) {
    take_no_rotation(arena);
  }
}

void LayerRunner::take_no_rotation(Arena& arena) {
  const Shape shape{2, sizes_.head_dim / 2};
  no_rotation_ = arena.take("RoPE table of layers without one", DType::kFloat32, shape);
  if (no_rotation_.empty()) return;  // measuring
  std::vector<float> table(static_cast<size_t>(shape.num_elements()), 1.0f);
  std::fill_n(table.begin(), shape[1], 0.0f);
  operations_.device().upload(no_rotation_,
                              {table.data(), DType::kFloat32, DeviceType::kCpu, shape});
  operations_.device().synchronize();  // before kernels read it early
}

const Tensor& LayerRunner::rope_table(const LayerStep& step, const LayerSpec& layer) const {
  return layer.rope_table ? step.rope_tables[static_cast<size_t>(*layer.rope_table)] : no_rotation_;
}

PendingNorm LayerRunner::norm(const LayerStep& step) const {
  const int64_t num_tokens = step.residual.dim(0);
  return {.values = normed_.slice(0, num_tokens),
          .squares = squares_.slice(0, num_tokens),
          .epsilon = sizes_.rms_norm_eps,
          .kind = block_.norm};
}

void LayerRunner::begin(const LayerStep& step, const LayerWeights& first) const {
  fused_.begin_norm(norm(step), step.residual, first.input_layernorm);
}

void LayerRunner::check_attention_weights(const LayerTensors& layer) const {
  const LayerWeights& weights = layer.weights;
  check_presence(layer, "input_layernorm", weights.input_layernorm, has_pre_norms(block_));
  check_presence(layer, "a bias of qkv_proj", weights.qkv_proj.bias, block_.biases.qkv);
  check_presence(layer, "qk_norm", weights.qk_norm, block_.qk_norm != QkNorm::kNone);
  check_presence(layer, "a bias of o_proj", weights.o_proj.bias, block_.biases.output);
  check_presence(layer, "post_attention_layernorm", weights.post_attention_layernorm,
                 has_post_norms(block_));
  if (block_.qk_norm == QkNorm::kNone) return;
  const int64_t normed_size =
      block_.qk_norm == QkNorm::kPerHead
          ? 2 * sizes_.head_dim
          : sizes_.query_size() + layer.pages.num_kv_heads() * sizes_.head_dim;
  CHECK(weights.qk_norm.num_elements() == normed_size, "layer ", layer.index,
        " has a qk_norm of shape ", weights.qk_norm.shape, ", expected [", normed_size, "]");
}

void LayerRunner::attention_block(const LayerStep& step, const LayerTensors& layer) const {
  keys_and_values(step, layer);
  attend(step, layer, query_.slice(0, step.residual.dim(0)));
}

void LayerRunner::last_layer(const LayerStep& step, const LayerTensors& layer, const Tensor& rows,
                             const LayerStep& needed) const {
  keys_and_values(step, layer);
  const int64_t num_tokens = step.residual.dim(0);
  const Shape row_shape{rows.dim(0), sizes_.query_size()};
  operations_.gather_rows(needed.residual, step.residual, rows);
  // Nothing reads the product of queries, keys and values any more.
  const Tensor query =
      qkv_.reshape({qkv_.num_elements()}).slice(0, row_shape.num_elements()).reshape(row_shape);
  operations_.gather_rows(
      query, query_.slice(0, num_tokens).reshape({num_tokens, sizes_.query_size()}), rows);
  // In parallel, the second half reads what the first has read.
  if (block_.is_parallel) begin(needed, layer.weights);
  attend(needed, layer, query.reshape({rows.dim(0), sizes_.num_heads, sizes_.head_dim}));
  feed_forward_block(needed, layer, nullptr);
}

void LayerRunner::keys_and_values(const LayerStep& step, const LayerTensors& layer) const {
  check_attention_weights(layer);
  const int64_t num_tokens = step.residual.dim(0);
  const LayerSpec& spec = block_.layers.at(static_cast<size_t>(layer.index));
  const LayerWeights& weights = layer.weights;
  fused_.normed_linear_rope_store_kv({.query = query_.slice(0, num_tokens),
                                      .pages = layer.pages,
                                      .qkv = qkv_.slice(0, num_tokens),
                                      .positions = step.positions,
                                      .kv_slots = step.kv_slots,
                                      .rope_table = rope_table(step, spec),
                                      .qk_norm_kind = block_.qk_norm,
                                      .qk_norm = weights.qk_norm,
                                      .norm_epsilon = sizes_.rms_norm_eps,
                                      .query_scaling = block_.query_scaling},
                                     norm(step), weights.qkv_proj);
}

void LayerRunner::attend(const LayerStep& step, const LayerTensors& layer,
                         const Tensor& query) const {
  const int64_t num_tokens = query.dim(0);
  const LayerSpec& spec = block_.layers.at(static_cast<size_t>(layer.index));
  const LayerWeights& weights = layer.weights;
  const Tensor out = attention_out_.slice(0, num_tokens);
  operations_.attention(out, {.query = query,
                              .pages = layer.pages,
                              .batch = step.attention,
                              .scale = attention_scale(block_, sizes_.head_dim),
                              .softcap = static_cast<float>(block_.attention_softcap),
                              .sliding_window = spec.sliding_window,
                              .workspace = attention_workspace_});
  // In parallel, the second half reads what the first has read.
  add_to_residual(step, out.reshape({num_tokens, sizes_.query_size()}),
                  {.weight = weights.o_proj,
                   .post_norm = weights.post_attention_layernorm,
                   .next_norm = block_.is_parallel ? nullptr : &weights.pre_feedforward_layernorm});
}

void LayerRunner::check_feed_forward_weights(const LayerTensors& layer) const {
  const LayerWeights& weights = layer.weights;
  check_presence(layer, "pre_feedforward_layernorm", weights.pre_feedforward_layernorm,
                 has_pre_norms(block_) && !block_.is_parallel);
  check_presence(layer, "a bias of gate_up_proj", weights.gate_up_proj.bias, block_.biases.gate_up);
  check_presence(layer, "a bias of down_proj", weights.down_proj.bias, block_.biases.down);
  check_presence(layer, "post_feedforward_layernorm", weights.post_feedforward_layernorm,
                 has_post_norms(block_));
}

void LayerRunner::feed_forward_block(const LayerStep& step, const LayerTensors& layer,
                                     const LayerWeights* next) const {
  check_feed_forward_weights(layer);
  const int64_t num_tokens = step.residual.dim(0);
  const Tensor hidden = hidden_.slice(0, num_tokens);
  fused_.normed_linear_activate_mul(hidden, norm(step), layer.weights.gate_up_proj,
                                    gate_up_.slice(0, num_tokens), block_.activation);
  add_to_residual(step, hidden,
                  {.weight = layer.weights.down_proj,
                   .post_norm = layer.weights.post_feedforward_layernorm,
                   .next_norm = next == nullptr ? nullptr : &next->input_layernorm});
  // Layers with a sliding window compute less than this.
  operations_.device().stop_point(
      block_flops(sizes_, num_tokens, step.attention.num_prefill_scores));
}

// The end of a half, and the one place where devices would meet that divide a model among
// themselves: each then has some of the input features, and its product is a part of the sum. The
// sum over devices comes between the product and what follows, which is all of it at once here:
// the norm of what the half adds, the residual add and the next norm.
void LayerRunner::add_to_residual(const LayerStep& step, const Tensor& x,
                                  const HalfEnd& end) const {
  const auto multiplier = static_cast<float>(block_.residual_multiplier);
  if (has_post_norms(block_)) {
    const Tensor half_out = half_out_.slice(0, x.dim(0));
    operations_.linear(half_out, x, end.weight);
    if (end.next_norm == nullptr) {
      operations_.rms_norm_add(step.residual, half_out, end.post_norm, sizes_.rms_norm_eps,
                               multiplier);
    } else {
      fused_.rms_norm_add_begin_norm(step.residual, norm(step), half_out, end.post_norm,
                                     *end.next_norm, multiplier);
    }
  } else if (end.next_norm == nullptr) {
    operations_.linear_add(step.residual, x, end.weight, multiplier);
  } else {
    fused_.linear_add_begin_norm(step.residual, norm(step), x, end.weight, *end.next_norm,
                                 multiplier);
  }
}

}  // namespace tessera
