#include "engine/model/sampling_lists.h"

#include <algorithm>
#include <map>

#include "engine/model/philox.h"

namespace tessera {
namespace {

// How often each token occurs among the last ones that the penalties look at.
std::map<TokenId, int32_t> count_recent_tokens(const TokenChunk& chunk) {
  const auto window = static_cast<size_t>(chunk.sampling->penalty_window);
  const size_t size = chunk.tokens.size();
  std::map<TokenId, int32_t> counts;
  for (const TokenId token : chunk.tokens.last(window == 0 ? size : std::min(window, size))) {
    ++counts[token];
  }
  return counts;
}

bool is_penalized(const TokenChunk& chunk) {
  return chunk.sampling != nullptr && has_penalty(*chunk.sampling);
}

}  // namespace

SamplingLists list_sampling(std::span<const TokenChunk> step) {
  SamplingLists lists;
  for (const TokenChunk& chunk : step) {
    if (chunk.sampling == nullptr) continue;
    const SamplingParams& params = *chunk.sampling;
    lists.temperature.push_back(static_cast<float>(params.temperature));
    lists.top_k.push_back(static_cast<int32_t>(params.top_k));
    lists.top_p.push_back(static_cast<float>(params.top_p));
    lists.min_p.push_back(static_cast<float>(params.min_p));
    const uint64_t bits = random_bits(params.seed, static_cast<uint64_t>(chunk.answer_index));
    lists.random.push_back(static_cast<int32_t>(bits));
    lists.random.push_back(static_cast<int32_t>(bits >> 32));
  }
  return lists;
}

PenaltyLists list_penalties(std::span<const TokenChunk> step) {
  PenaltyLists lists;
  lists.offsets.push_back(0);
  for (const TokenChunk& chunk : step) {
    if (chunk.sampling == nullptr) continue;
    const SamplingParams& params = *chunk.sampling;
    if (is_penalized(chunk)) {
      for (const auto& [token, count] : count_recent_tokens(chunk)) {
        lists.tokens.push_back(token);
        lists.counts.push_back(count);
      }
    }
    lists.offsets.push_back(static_cast<int32_t>(lists.tokens.size()));
    lists.repetition.push_back(static_cast<float>(params.repetition_penalty));
    lists.frequency.push_back(static_cast<float>(params.frequency_penalty));
    lists.presence.push_back(static_cast<float>(params.presence_penalty));
  }
  return lists;
}

bool has_penalty(std::span<const TokenChunk> step) {
  return std::ranges::any_of(step, is_penalized);
}

}  // namespace tessera
