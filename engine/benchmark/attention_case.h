// What is timed: the dimensions of an attention and how much work they mean.
#pragma once

#include <cstdint>

#include "kernels/tensor/dtype.h"

namespace tessera {

// The most that head_dim may be.
inline constexpr int64_t kMaxBenchmarkHeadDim = 1024;

// The dimensions that all cases of a run share.
struct AttentionHeads {
  int64_t num_heads = 32;
  int64_t num_kv_heads = 8;
  int64_t head_dim = 128;
  bool causal = true;
  float softcap = 0.0f;        // 0: none
  int64_t sliding_window = 0;  // tokens; 0: none

  float scale() const;  // 1 / sqrt(head_dim)
};

// How the keys and values lie in memory.
struct PageLayout {
  int64_t page_size = 64;   // tokens
  bool contiguous = false;  // one page per sequence instead, in order
  KvDType kv_dtype = KvDType::kActivation;
};

// One batch of sequences of equal lengths.
struct AttentionCase {
  int64_t batch_size = 1;
  int64_t query_length = 1;    // tokens
  int64_t context_length = 1;  // tokens, the queries included

  bool is_decode() const { return query_length == 1; }
};

// The keys [begin, end) that a query sees; query 0 is the first of the step.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};
KeyRange visible_keys(const AttentionHeads& heads, const AttentionCase& attention_case,
                      int64_t query);

// Multiplications and additions of both matrix products. Of a causal square half is counted, as in
// the literature; with a window, the pairs of query and key that see each other.
double count_flops(const AttentionHeads& heads, const AttentionCase& attention_case);

// Bytes of the keys and values, of type `dtype`, that a step must read once.
double count_kv_bytes(const AttentionHeads& heads, const AttentionCase& attention_case,
                      DType dtype);

}  // namespace tessera
