// The order in which the elements of query and key heads are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "model_loaders/model_config.h"

namespace tessera {

// Element i of a head in memory is element order[i] of the checkpoint: of every pair that RoPE
// turns, one element lies in the first half of the head and the other at the same place of the
// second half; the elements that stay as they are fill the ends of both halves. Products of queries
// and keys do not depend on the order, as long as both have the same. Empty: as in the checkpoint.
std::vector<int64_t> head_order(const ModelConfig& config);

}  // namespace tessera
