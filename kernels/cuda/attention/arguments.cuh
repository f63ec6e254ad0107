// AttentionParams as the kernels take them: plain pointers and 32-bit sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>

#include "kernels/attention_params.h"
#include "kernels/cuda/primitives/fast_divisor.h"

namespace tessera {

// Keys and values are copied in groups of this many tokens, which never cross a page.
inline constexpr int kCopyTokens = 16;

struct AttentionArguments {
  void* out;                       // [num_tokens, num_heads, head_dim]
  const void* query;               // same shape
  const void* keys;                // [num_pages, num_kv_heads, page_size, head_dim]
  const void* values;              // same shape
  const int32_t* query_starts;     // [num_sequences + 1]
  const int32_t* context_lengths;  // [num_sequences]
  const int32_t* block_tables;     // [num_sequences, max_pages]
  int max_pages;
  int num_tokens;
  int num_decodes;
  int num_heads;
  int num_kv_heads;
  int heads_per_kv_head;
  FastDivisor page_size;
  bool causal;
  int window;           // keys a query sees; larger than any context when there is no window
  float softcap_scale;  // scale / softcap, or 0 without a softcap
  float scale_log2;     // for 2^x: log2(e) times softcap if there is one, else times scale
};

inline AttentionArguments make_attention_arguments(const Tensor& out,
                                                   const AttentionParams& params) {
  constexpr int64_t kNoWindow = int64_t{1} << 30;
  const KvPages& pages = params.pages;
  const AttentionBatch& batch = params.batch;
  CHECK(pages.page_size() % kCopyTokens == 0, "attention: page_size is ", pages.page_size(),
        ", CUDA needs a multiple of ", kCopyTokens);
  CHECK(batch.max_context_length * pages.page_size() < int64_t{1} << 32, "attention: context of ",
        batch.max_context_length, " tokens is too long for pages of ", pages.page_size());
  return {
      .out = out.data,
      .query = params.query.data,
      .keys = pages.keys.data,
      .values = pages.values.data,
      .query_starts = batch.query_starts.as<int32_t>(),
      .context_lengths = batch.context_lengths.as<int32_t>(),
      .block_tables = batch.block_tables.as<int32_t>(),
      .max_pages = static_cast<int>(batch.block_tables.dim(1)),
      .num_tokens = static_cast<int>(params.query.dim(0)),
      .num_decodes = static_cast<int>(batch.num_decodes),
      .num_heads = static_cast<int>(params.query.dim(1)),
      .num_kv_heads = static_cast<int>(pages.num_kv_heads()),
      .heads_per_kv_head = static_cast<int>(params.query.dim(1) / pages.num_kv_heads()),
      .page_size = FastDivisor(static_cast<uint32_t>(pages.page_size())),
      .causal = params.causal,
      .window = static_cast<int>(
          params.sliding_window == 0 ? kNoWindow : std::min(params.sliding_window, kNoWindow)),
      .softcap_scale = params.softcap > 0.0f ? params.scale / params.softcap : 0.0f,
      .scale_log2 =
          (params.softcap > 0.0f ? params.softcap : params.scale) * std::numbers::log2e_v<float>,
  };
}

}  // namespace tessera
