// Attention in double precision, written to be read, and the same formula as a plain 16-bit
// implementation would compute it, to know what accuracy can be asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/kernels/tolerance.h"

namespace tessera {

// One sequence's queries, which are the last tokens of its context, over contiguous keys and
// values.
struct ReferenceSequence {
  std::vector<double> queries;  // [query_length, num_heads, head_dim]
  std::vector<double> keys;     // [context_length, num_kv_heads, head_dim]
  std::vector<double> values;   // same shape
};

// As in AttentionParams.
struct ReferenceAttentionParams {
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  double scale;
  double softcap;
  bool causal;
  int64_t sliding_window;
};

struct ReferenceAttention {
  Reference out;               // [query_length, num_heads, head_dim]
  double largest_score = 0.0;  // largest sum of |query * key * scale| of any visible pair
};
ReferenceAttention reference_attention(const ReferenceSequence& sequence,
                                       const ReferenceAttentionParams& params);

// [query_length, num_heads, head_dim], computed in float32 with the weights exp(score - largest)
// and the result rounded to `dtype`, as tensor cores require; inputs are taken to be so already.
std::vector<double> rounded_attention(const ReferenceSequence& sequence,
                                      const ReferenceAttentionParams& params, DType dtype);

}  // namespace tessera
