#include "engine/model/sampling_lists.h"

#include <algorithm>
#include <cmath>
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
  return chunk.sampling != nullptr && (has_penalty(*chunk.sampling) || !chunk.barred.empty());
}

// The tokens of one sequence that are penalised, how often each counts, and how much a count takes.
struct Penalized {
  std::map<TokenId, int32_t> counts;
  float frequency = 0.0f;
};

// Tokens that may not be drawn count so often that their logits fall below all others by far. For
// that a count must take something; where it would take next to nothing, the others count 0 times.
void bar(std::span<const TokenId> tokens, Penalized& penalized) {
  constexpr float kLeastFrequency = 1e-3f;
  constexpr int32_t kCount = 1 << 30;
  if (tokens.empty()) return;
  if (std::abs(penalized.frequency) < kLeastFrequency) {
    penalized.frequency = 1.0f;
    for (auto& [token, count] : penalized.counts) count = 0;
  }
  for (const TokenId token : tokens.first(std::min(tokens.size(), kMaxBarredTokens))) {
    penalized.counts[token] = penalized.frequency > 0.0f ? kCount : -kCount;
  }
}

Penalized penalized_tokens(const TokenChunk& chunk) {
  Penalized penalized = {.counts = {},
                         .frequency = static_cast<float>(chunk.sampling->frequency_penalty)};
  if (has_penalty(*chunk.sampling)) penalized.counts = count_recent_tokens(chunk);
  bar(chunk.barred, penalized);
  return penalized;
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
    const Penalized penalized = penalized_tokens(chunk);
    for (const auto& [token, count] : penalized.counts) {
      lists.tokens.push_back(token);
      lists.counts.push_back(count);
    }
    lists.offsets.push_back(static_cast<int32_t>(lists.tokens.size()));
    lists.repetition.push_back(static_cast<float>(params.repetition_penalty));
    lists.frequency.push_back(penalized.frequency);
    lists.presence.push_back(static_cast<float>(params.presence_penalty));
  }
  return lists;
}

bool has_penalty(std::span<const TokenChunk> step) {
  return std::ranges::any_of(step, is_penalized);
}

}  // namespace tessera
