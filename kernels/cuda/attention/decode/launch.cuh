// How decode attention is launched, in any format of keys and values.
#pragma once

#include "kernels/cuda/attention/decode/block.cuh"
#include "kernels/cuda/attention/decode/plan.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/device/tensor_map.h"

namespace tessera {

// Query tokens of the decodes, of a step that may have prompts beside them.
inline int64_t max_decode_tokens(const AttentionParams& params) {
  const AttentionBatch& batch = params.batch;
  const int64_t num_tokens = params.query.dim(0);
  if (batch.num_decodes == batch.num_sequences) return num_tokens;
  return std::min(num_tokens, batch.num_decodes * batch.max_decode_query_length);
}

// Checks that 32 bits can count the tiles of all items, whatever lengths are in device memory.
inline void check_decode_limits(const AttentionArguments& arguments, const AttentionParams& params,
                                const DecodeAttentionPlan& plan) {
  const int64_t max_tokens = int64_t{arguments.max_pages} * plan.page_size;
  // The rows of all sequences together; each sequence may begin one more block of rows.
  const int64_t max_rows = arguments.heads_per_kv_head * max_decode_tokens(params);
  const int64_t row_blocks = max_rows / plan.item_rows + arguments.num_decodes;
  const int64_t max_items = int64_t{arguments.num_kv_heads} * row_blocks;
  CHECK(max_tokens * plan.page_size < int64_t{1} << 32, "attention: block tables of ",
        arguments.max_pages, " pages of ", plan.page_size, " tokens are too long");
  CHECK(max_items * (max_tokens / kDecodeTileTokens + 2) < int64_t{1} << 31,
        "attention: ", arguments.num_decodes, " sequences of up to ", max_tokens,
        " tokens are too many");
}

// Launches `kernel`, which computes `format`, with what all formats share. `arguments` are the
// kernel's first parameter and made of `params`, of which `pages` are those with rows of
// Format::kRowElements 16-bit elements.
template <typename Format, bool kCopyEngine, typename Kernel>
void launch_decode_kernel(Kernel kernel, const typename Format::Arguments& arguments,
                          const AttentionParams& params, const KvPages& pages,
                          const DecodeAttentionPlan& plan, uint32_t* arrivals,
                          cudaStream_t stream) {
  constexpr int kHeadDim = Format::kHeadDim;
  check_decode_limits(arguments, params, plan);
  float* const workspace = params.workspace.as<float>();
  const int num_slots = num_decode_slots(static_cast<int>(plan.num_blocks));
  const int64_t item_blocks = plan.num_blocks / arguments.num_kv_heads;
  const bool is_even = !plan.keeps_whole && arguments.num_decodes == 1 && item_blocks > 1;
  const DecodeArguments decode = {
      .partials = {.outputs = workspace,
                   .log_sums = workspace + plan.item_rows * num_slots * kHeadDim,
                   .arrivals = arrivals,
                   .num_slots = num_slots},
      .division = {.item_rows = static_cast<int>(plan.item_rows),
                   .is_even = is_even,
                   .item_blocks = FastDivisor(static_cast<uint32_t>(is_even ? item_blocks : 2)),
                   .max_whole_tiles = kMaxWholeTiles,
                   .least_tiles = kLeastSplitTiles},
      .keeps_whole = plan.keeps_whole,
      .num_stages = static_cast<int>(plan.num_stages),
      .row_tiles = static_cast<int>(plan.row_tiles),
      .box_tokens = static_cast<int>(plan.box_tokens)};
  DecodePageMaps maps{};
  if constexpr (kCopyEngine) {
    const int box_tokens = static_cast<int>(plan.box_tokens);
    maps.keys = make_page_rows_tensor_map(pages.keys, box_tokens);
    maps.values = make_page_rows_tensor_map(pages.values, box_tokens);
    maps.last_keys = make_page_rows_tensor_map(pages.keys, kCopyTokens);
    maps.last_values = make_page_rows_tensor_map(pages.values, kCopyTokens);
  }
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(plan.shared_bytes)));
  const LaunchShape shape = {.blocks = dim3(static_cast<unsigned>(plan.num_blocks)),
                             .threads = DecodeThreads<kHeadDim, kCopyEngine>::kAll,
                             .shared_bytes = static_cast<size_t>(plan.shared_bytes)};
  attach_clocks();
  if constexpr (kCopyEngine) {
    launch_dependent(kernel, shape, stream, arguments, decode, maps);
  } else {
    kernel<<<shape.blocks, shape.threads, shape.shared_bytes, stream>>>(arguments, decode, maps);
    CUDA_CHECK(cudaGetLastError());
  }
}

}  // namespace tessera
