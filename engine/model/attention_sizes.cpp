#include "engine/model/attention_sizes.h"

#include <algorithm>

#include "engine/model/step_limits.h"

namespace tessera {
namespace {

// A sequence with drafts is a decode.
static_assert(kDraftedStepTokens <= kMaxDecodeQueryLength);

// query_length(chunk): how many of the chunk's last tokens have queries.
template <typename QueryLength>
AttentionBatch sizes(std::span<const TokenChunk> step, QueryLength query_length) {
  AttentionBatch attention;
  attention.num_sequences = static_cast<int64_t>(step.size());
  bool is_leading = true;
  for (const TokenChunk& chunk : step) {
    const int64_t num_tokens = query_length(chunk);
    is_leading = is_leading && num_tokens <= kMaxDecodeQueryLength;
    if (is_leading) {
      ++attention.num_decodes;
      attention.num_decode_keys += num_tokens > 0 ? chunk.end() : 0;
      attention.max_decode_query_length = std::max(attention.max_decode_query_length, num_tokens);
    } else {
      attention.num_prefill_scores += num_tokens * (2 * chunk.end() - num_tokens + 1) / 2;
    }
    attention.max_query_length = std::max(attention.max_query_length, num_tokens);
    attention.max_context_length = std::max(attention.max_context_length, chunk.end());
  }
  return attention;
}

}  // namespace

AttentionBatch attention_sizes(std::span<const TokenChunk> step) {
  return sizes(step, [](const TokenChunk& chunk) { return chunk.num_tokens; });
}

AttentionBatch sampled_attention_sizes(std::span<const TokenChunk> step) {
  return sizes(step, [](const TokenChunk& chunk) { return chunk.num_draws(); });
}

}  // namespace tessera
