// Which sequences of a step begin with the same pages. Requests behind one instruction do, thanks
// to the prefix cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/token_chunk.h"

namespace tessera {

// Groups of sequences that follow each other, in the order of a step's decodes. See SharedPrefixes
// (kernels/attention_params.h), whose tensors these become.
struct PrefixGroups {
  std::vector<int32_t> starts = {0};  // and the end of the last group
  std::vector<int32_t> lengths;       // tokens that a group shares; 0 for sequences without company
  int64_t spared_tokens = 0;

  // The length of its group for each of `num_decodes` sequences, 0 for those behind the groups.
  std::vector<int32_t> own_begins(int64_t num_decodes) const;
};

// `decodes` have one token each. A sequence joins the group before it if the two together spare no
// fewer tokens than the group alone.
PrefixGroups group_by_prefix(std::span<const TokenChunk> decodes, int64_t page_size);

}  // namespace tessera
