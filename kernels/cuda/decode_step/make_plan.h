// Which models the fused decode kernel computes, and how it divides a step of them over the GPU.
// Plain arithmetic, tested without a GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/block_fields.h"
#include "kernels/cuda/decode_step/plan.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/weight_matrix.h"

namespace tessera {

struct FusedDecodeShape {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t page_size = 0;  // tokens
  bool is_bfloat16 = false;
  DType pages = DType::kBFloat16;
  WeightFormat weights = WeightFormat::kDense;
  GpuTraits gpu;
};

// The kinds of layers that a block has, in the order of their first layers.
inline std::vector<LayerSpec> fused_kinds(const BlockSpec& block) {
  std::vector<LayerSpec> kinds;
  for (const LayerSpec& layer : block.layers) {
    if (std::ranges::find(kinds, layer) == kinds.end()) kinds.push_back(layer);
  }
  return kinds;
}

// The field of `block` that the kernel does not compute; empty when it computes all of it.
inline std::string fused_decode_block_problem(const BlockSpec& block) {
  BlockSpec computed;
  computed.norm_placement = block.norm_placement;
  if (block.qk_norm != QkNorm::kLayerNormPerHead) computed.qk_norm = block.qk_norm;
  computed.biases.qkv = block.biases.qkv;
  computed.activation = block.activation;
  computed.attention_scale = block.attention_scale;
  computed.attention_softcap = block.attention_softcap;
  computed.embedding_multiplier = block.embedding_multiplier;
  computed.residual_multiplier = block.residual_multiplier;
  computed.logit_softcap = block.logit_softcap;
  computed.layers = block.layers;
  return first_difference(block, computed);
}

// What the kernel is told of a block that it computes.
inline FusedBlock fused_block(const BlockSpec& block, int64_t head_dim) {
  const std::vector<LayerSpec> kinds = fused_kinds(block);
  BlockSpec llama;
  llama.attention_scale = block.attention_scale;
  for (size_t layer = 0; layer < block.layers.size(); ++layer) {
    llama.layers.push_back({.sliding_window = kinds.front().sliding_window});
  }
  FusedBlock fused{
      .is_llama =
          block == llama && fused_instance_is_built(FusedInstance::kLlama, head_dim) ? 1 : 0,
      .has_qkv_bias = block.biases.qkv ? 1 : 0,
      .has_qk_norm = block.qk_norm != QkNorm::kNone ? 1 : 0,
      .has_whole_norm = block.qk_norm == QkNorm::kWholeProjection ? 1 : 0,
      .has_pre_norms = block.norm_placement != NormPlacement::kPost ? 1 : 0,
      .has_post_norms = block.norm_placement != NormPlacement::kPre ? 1 : 0,
      .has_gelu = block.activation == Activation::kGeluTanh ? 1 : 0,
      .groups_per_kv_head = 1,
      .num_kv_heads = 0,
      .embedding_multiplier = static_cast<float>(block.embedding_multiplier),
      .residual_multiplier = static_cast<float>(block.residual_multiplier),
      .logit_softcap = static_cast<float>(block.logit_softcap),
      .second_kind = {}};
  for (size_t layer = 0; kinds.size() > 1 && layer < block.layers.size(); ++layer) {
    if (block.layers[layer] == kinds[1]) fused.second_kind[layer / 32] |= 1u << layer % 32;
  }
  return fused;
}

// Why the kernel does not compute layers that differ in window or RoPE table as these do, for
// people; empty when it does.
inline std::string fused_decode_layers_problem(const BlockSpec& block) {
  const std::vector<LayerSpec> kinds = fused_kinds(block);
  if (kinds.size() > 2) {
    return concat("its layers are of ", kinds.size(),
                  " kinds, by window and RoPE table; at most 2");
  }
  if (kinds.size() == 2 && block.layers.size() > 32 * kMaxKindWords) {
    return concat("it has ", block.layers.size(), " layers of two kinds; at most ",
                  32 * kMaxKindWords);
  }
  return "";
}

// Why the kernel cannot run these sizes, for people; empty when it can.
inline std::string fused_decode_shape_problem(const FusedDecodeShape& shape) {
  const int64_t query_size = shape.num_heads * shape.head_dim;
  if (!shape.gpu.runs_hopper()) {
    return "it needs the copy engine of sm_90";
  }
  if (shape.gpu.is_batch_invariant()) {
    return "its sums depend on how many sequences a step has";
  }
  if (!shape.is_bfloat16) {
    return "it computes in bfloat16";
  }
  const bool has_fp8_pages = shape.pages == DType::kFloat8E4M3;
  if (shape.pages != DType::kBFloat16 && !has_fp8_pages) {
    return concat("it keeps keys and values in bfloat16 or float8_e4m3, not in ",
                  to_string(shape.pages));
  }
  if (shape.weights != WeightFormat::kDense) {
    return concat("it reads ", to_string(WeightFormat::kDense), " weights, not ",
                  to_string(shape.weights));
  }
  if (!fused_instance_is_built(FusedInstance::kLlama, shape.head_dim) &&
      !fused_instance_is_built(FusedInstance::kAnyBlock, shape.head_dim)) {
    return concat("head_dim is ", shape.head_dim, ", not 64, 96, 128 or 256");
  }
  if (shape.hidden_size % kUnitFeatures != 0 || query_size % kUnitFeatures != 0 ||
      shape.intermediate_size % kUnitFeatures != 0) {
    return concat("hidden_size ", shape.hidden_size, ", num_heads * head_dim ", query_size,
                  " and intermediate_size ", shape.intermediate_size, " are not all multiples of ",
                  kUnitFeatures);
  }
  if (shape.hidden_size > kFusedWarps * kMaxKeptChunks * kUnitFeatures) {
    return concat("hidden_size is ", shape.hidden_size, ", more than ",
                  kFusedWarps * kMaxKeptChunks * kUnitFeatures);
  }
  if (std::max(shape.intermediate_size, query_size) >
      kFusedWarps * kMaxInputChunks * kUnitFeatures) {
    return concat("intermediate_size ", shape.intermediate_size, " or num_heads * head_dim ",
                  query_size, " is more than ", kFusedWarps * kMaxInputChunks * kUnitFeatures);
  }
  const int tokens = unit_tokens(static_cast<int>(shape.head_dim), has_fp8_pages ? 1 : 2);
  if (shape.page_size % tokens != 0) {
    return concat("pages of ", shape.page_size, " tokens are no multiple of ", tokens);
  }
  const int64_t groups = shape.num_kv_heads * query_groups(shape.num_heads / shape.num_kv_heads);
  if (groups > kMaxFusedPieces) {
    return concat(shape.num_heads, " query and ", shape.num_kv_heads, " KV heads make ", groups,
                  " groups of ", kMaxFusedGroup, " query heads or fewer, at most ",
                  kMaxFusedPieces);
  }
  return "";
}

inline FusedDecodePlan plan_fused_decode(const BlockSpec& block, const FusedDecodeShape& shape) {
  FusedDecodePlan plan;
  plan.problem = fused_decode_shape_problem(shape);
  if (!plan.runs()) return plan;
  if (const std::string field = fused_decode_block_problem(block); !field.empty()) {
    plan.problem = concat("it does not compute this model's ", field);
    return plan;
  }

  plan.problem = fused_decode_layers_problem(block);
  if (!plan.runs()) return plan;
  plan.block = fused_block(block, shape.head_dim);
  plan.block.num_kv_heads = static_cast<int>(shape.num_kv_heads);
  plan.block.groups_per_kv_head = query_groups(shape.num_heads / shape.num_kv_heads);
  if (plan.block.groups_per_kv_head > 1) plan.block.is_llama = 0;
  plan.has_fp8_pages = shape.pages == DType::kFloat8E4M3;
  const FusedInstance instance = fused_instance(plan.block, plan.has_fp8_pages, shape.head_dim);
  if (!fused_instance_is_built(instance, shape.head_dim)) {
    plan.problem = concat("with head_dim ", shape.head_dim, " it computes Llama's block alone");
    return plan;
  }
  const std::vector<LayerSpec> kinds = fused_kinds(block);
  plan.num_kinds = std::max(1, static_cast<int>(kinds.size()));
  plan.num_windows =
      plan.num_kinds > 1 && kinds[0].sliding_window != kinds[1].sliding_window ? 2 : 1;
  plan.stream_parts = stream_parts(instance);

  const int64_t query_size = shape.num_heads * shape.head_dim;
  const auto as_int = [](int64_t value) { return static_cast<int>(value); };
  const int hidden_size = as_int(shape.hidden_size);
  const int head_dim = as_int(shape.head_dim);
  const int intermediate_size = as_int(shape.intermediate_size);
  const auto single = [&](int64_t rows, int64_t features) {
    const int num_items = as_int(ceil_divide<int64_t>(rows, kUnitRows));
    return FusedProduct{.rows = as_int(rows),
                        .features = as_int(features),
                        .num_items = num_items,
                        .is_paired = 0,
                        .block_items = FastDivisor(static_cast<uint32_t>(num_items)),
                        .block_rows = 0,
                        .pair_distance = 0,
                        .static_items = 0,
                        .claims_many = 0};
  };
  FusedProduct qkv = single((shape.num_heads + 2 * shape.num_kv_heads) * head_dim, hidden_size);
  qkv.is_paired = 1;
  qkv.num_items /= 2;
  qkv.block_items = FastDivisor(static_cast<uint32_t>(head_dim / kItemRows));  // pairs per head
  qkv.block_rows = head_dim;
  qkv.pair_distance = head_dim / 2;
  FusedProduct gate_up = single(2 * intermediate_size, hidden_size);
  gate_up.is_paired = 1;
  gate_up.num_items /= 2;
  gate_up.pair_distance = intermediate_size;
  plan.products = {qkv, single(hidden_size, query_size), gate_up,
                   single(hidden_size, intermediate_size), single(shape.vocab_size, hidden_size)};
  // Every block must have items of its own of the products that end in the residual stream: the
  // word that it adds there says that it is done with what came before.
  plan.num_blocks = as_int(std::min<int64_t>(
      {int64_t{shape.gpu.num_multiprocessors}, hidden_size / kUnitRows, kMaxFusedBlocks}));
  for (FusedProduct& product : plan.products) {
    product.static_items = product.num_items / plan.num_blocks;
    product.claims_many = product.static_items > kClaimedItems ? 1 : 0;
    // A block claims at most one item of these two products, which end in the residual stream: for
    // every pass it reads the inputs of several tokens anew, and it has one place for the squares
    // of a claimed item.
    if (&product == &plan.products[kOProj] || &product == &plan.products[kDown]) {
      product.claims_many = 0;
    }
    if (product.claims_many != 0) product.static_items -= kClaimedItems;
  }
  // With norms of what the halves add, a lane keeps one row of that, so there must be a single
  // pass.
  if (plan.block.has_post_norms != 0 && plan.products[kOProj].static_items >= kPassGroups) {
    plan.problem =
        concat("hidden_size is ", shape.hidden_size, ": with norms after the halves less than ",
               kPassGroups * kUnitRows * plan.num_blocks);
    return plan;
  }
  plan.num_groups = as_int(shape.num_kv_heads) * plan.block.groups_per_kv_head;
  plan.group_heads = as_int(shape.num_heads) / plan.num_groups;
  const int64_t layer_bytes =
      2 *
      ((query_size * 2 + 2 * shape.num_kv_heads * shape.head_dim + 3 * shape.intermediate_size) *
       shape.hidden_size);
  const int64_t context_bytes =  // of a token in a layer
      2 * shape.num_kv_heads * shape.head_dim * static_cast<int64_t>(size_of(shape.pages));
  plan.most_reread = kRereadBytes / context_bytes;
  // Tokens of a sequence see each other's keys before they are in pages (earlier_rows.cuh). A norm
  // of whole projections would take the squares of all key heads for each of these keys.
  plan.takes_drafts = plan.block.has_whole_norm == 0;
  const bool is_shared_evenly = hidden_size % (kFusedWarps * kUnitFeatures) == 0;
  plan.has_small_layers = layer_bytes < kSmallLayerBytes;
  plan.most_under_way = plan.has_small_layers && is_shared_evenly ? kFewUnderWay : kMaxFusedStages;
  const auto fits = [&](int tokens) {
    return fused_shared_memory(plan, tokens, head_dim, shape.gpu.shared_bytes).rings.stages >=
           kLeastFusedStages;
  };
  plan.max_tokens = fits(kFusedMaxTokens) ? kFusedMaxTokens : fits(1) ? 1 : 0;
  if (plan.max_tokens == 0) plan.problem = "its rings do not fit in shared memory";
  return plan;
}

}  // namespace tessera
