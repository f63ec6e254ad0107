// The order in which the elements of heads are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "model_loaders/model_config.h"

namespace tessera {

// In an order, instead of an element of the checkpoint: a zero (padded_config.h).
inline constexpr int64_t kZeroElement = -1;

// Element i of a head in memory is element order[i] of the checkpoint: of every pair that RoPE
// turns, one element lies in the first half of the head and the other at the same place of the
// second half; the elements that stay as they are come behind these in both halves, and zeros fill
// the ends. Products of queries and keys do not depend on the order, as long as both have the same.
// Values have it where heads or queries are filled up with zeros. Empty: as in the checkpoint.
std::vector<int64_t> head_order(const ModelConfig& config);

// The same of the elements of all query heads of a KV head, behind which there may be heads of
// zeros. Empty where there are none: then each has head_order().
std::vector<int64_t> query_order(const ModelConfig& config);

// First num_stored elements as they are, then zeros: `count` in all. Empty where there are none.
std::vector<int64_t> zeros_behind(int64_t num_stored, int64_t count);

}  // namespace tessera
