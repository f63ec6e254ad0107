// Prefill over float8_e4m3 pages: how many KV heads of how many sequences are widened at a time for
// the kernels that read 16 bits. Plain arithmetic, no CUDA.
//
// A prefill kernel reads a key once for each tile of queries, so that widening it first costs
// little where it matters (contexts of 128k, chunks of 4096: 1 to 2 % of attention), and results
// are those of the 16-bit kernel bit by bit, because widening is exact.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/backend_limits.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

// What widened keys and values take together, unless one KV head of one sequence takes more.
inline constexpr int64_t kWidenedBytes = int64_t{256} << 20;
inline constexpr int64_t kLargestPage = 256;  // tokens
inline constexpr int64_t kSmallestPage = 16;

// Bytes of one KV head of so many tokens, keys and values, in 16 bits.
constexpr int64_t widened_head_bytes(int64_t head_dim, int64_t tokens) {
  return 2 * 2 * head_dim * tokens;
}

// The scratch of a step within limits, in bytes: pages, their block tables, and where not all KV
// heads fit at a time, the queries and outputs of those that do.
struct WideningScratch {
  int64_t pages = 0;
  int64_t tables = 0;
  int64_t rows = 0;  // of queries, and as many of outputs

  int64_t total() const { return pages + tables + 2 * rows; }
};

inline WideningScratch widening_scratch(const BackendLimits& limits,
                                        int64_t most_bytes = kWidenedBytes) {
  constexpr int64_t kAlignment = 256;  // bytes
  const auto aligned = [](int64_t bytes) {
    return checked_round_up(bytes, kAlignment, "widened keys and values");
  };
  const int64_t context_length = std::max<int64_t>(1, limits.max_context_length);
  const int64_t tokens = checked_round_up(context_length, kLargestPage, "a context");
  const int64_t head = widened_head_bytes(limits.head_dim, tokens);
  const int64_t sequence = checked_multiply(head, limits.num_kv_heads, "widened keys and values");
  const int64_t all = checked_multiply(sequence, limits.max_sequences, "widened keys and values");
  WideningScratch scratch;
  scratch.pages = std::max(head, std::min(most_bytes, all));
  // Tables are longest when pages have the fewest tokens, and one head.
  constexpr int64_t kEntryBytes = 4;
  scratch.tables =
      aligned(scratch.pages / widened_head_bytes(limits.head_dim, kSmallestPage) * kEntryBytes);
  if (scratch.pages < sequence) {
    scratch.rows = aligned(limits.max_tokens * limits.num_heads * limits.head_dim * 2);
  }
  return scratch;
}

// What a step widens at a time.
struct WideningPlan {
  int64_t pages_per_sequence = 0;
  int64_t num_kv_heads = 0;   // all of them, or a part
  int64_t num_sequences = 0;  // more than one only with all heads
};

// For sequences of up to max_context_length tokens, in scratch.pages bytes.
inline WideningPlan plan_widening(const WideningScratch& scratch, int64_t num_kv_heads,
                                  int64_t head_dim, int64_t page_size, int64_t max_context_length) {
  WideningPlan plan;
  plan.pages_per_sequence = std::max<int64_t>(1, ceil_divide(max_context_length, page_size));
  const int64_t head = widened_head_bytes(head_dim, plan.pages_per_sequence * page_size);
  const int64_t heads = std::max<int64_t>(1, scratch.pages / head);
  plan.num_kv_heads = std::min(heads, num_kv_heads);
  plan.num_sequences = std::max<int64_t>(1, heads / num_kv_heads);
  return plan;
}

}  // namespace tessera
