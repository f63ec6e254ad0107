#include "engine/benchmark/attention_case.h"

#include <algorithm>
#include <cmath>

namespace tessera {

float AttentionHeads::scale() const {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

KeyRange visible_keys(const AttentionHeads& heads, const AttentionCase& attention_case,
                      int64_t query) {
  const int64_t end = heads.causal
                          ? attention_case.context_length - attention_case.query_length + query + 1
                          : attention_case.context_length;
  const int64_t begin =
      heads.sliding_window == 0 ? 0 : std::max(int64_t{0}, end - heads.sliding_window);
  return {begin, end};
}

double count_flops(const AttentionHeads& heads, const AttentionCase& attention_case) {
  const auto length = static_cast<double>(attention_case.query_length);
  double pairs = length * static_cast<double>(attention_case.context_length);
  if (heads.sliding_window > 0) {
    pairs = 0;
    for (int64_t query = 0; query < attention_case.query_length; ++query) {
      const KeyRange keys = visible_keys(heads, attention_case, query);
      pairs += static_cast<double>(keys.end - keys.begin);
    }
  } else if (heads.causal) {
    pairs -= length * (attention_case.is_decode() ? 0 : length / 2);
  }
  return 4 * pairs * static_cast<double>(heads.num_heads * heads.head_dim) *
         static_cast<double>(attention_case.batch_size);
}

double count_kv_bytes(const AttentionHeads& heads, const AttentionCase& attention_case,
                      DType dtype) {
  const int64_t first = visible_keys(heads, attention_case, 0).begin;
  return 2 * static_cast<double>(attention_case.batch_size * heads.num_kv_heads) *
         static_cast<double>((attention_case.context_length - first) * heads.head_dim) *
         static_cast<double>(size_of(dtype));
}

}  // namespace tessera
