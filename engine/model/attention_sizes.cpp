#include "engine/model/attention_sizes.h"

#include <algorithm>

#include "engine/model/step_limits.h"

namespace tessera {

// A sequence with drafts is a decode.
static_assert(kDraftedStepTokens <= kMaxDecodeQueryLength);

AttentionBatch attention_sizes(std::span<const TokenChunk> step) {
  AttentionBatch attention;
  attention.num_sequences = static_cast<int64_t>(step.size());
  bool is_leading = true;
  for (const TokenChunk& chunk : step) {
    is_leading = is_leading && chunk.num_tokens <= kMaxDecodeQueryLength;
    if (is_leading) {
      ++attention.num_decodes;
      attention.num_decode_keys += chunk.end();
      attention.max_decode_query_length =
          std::max(attention.max_decode_query_length, chunk.num_tokens);
    } else {
      attention.num_prefill_scores +=
          chunk.num_tokens * (2 * chunk.end() - chunk.num_tokens + 1) / 2;
    }
    attention.max_query_length = std::max(attention.max_query_length, chunk.num_tokens);
    attention.max_context_length = std::max(attention.max_context_length, chunk.end());
  }
  return attention;
}

}  // namespace tessera
