#include "engine/model/sampling_lists.h"

#include <algorithm>

#include "engine/model/philox.h"
#include "kernels/sampling_params.h"

namespace tessera {
namespace {

// The tokens that the draw may not give, as far as they are listed.
std::span<const TokenId> barred_tokens(const TokenChunk& chunk) {
  return chunk.barred.first(std::min(chunk.barred.size(), kMaxBarredTokens));
}

bool is_barred(const TokenChunk& chunk, TokenId token) {
  return std::ranges::find(barred_tokens(chunk), token) != barred_tokens(chunk).end();
}

// Appends each token among the last ones that the penalties look at, and how often it occurs.
void list_recent_tokens(const TokenChunk& chunk, PenaltyLists& lists) {
  const auto window = static_cast<size_t>(chunk.sampling->penalty_window);
  const size_t size = chunk.tokens.size();
  const auto recent = chunk.tokens.last(window == 0 ? size : std::min(window, size));
  std::vector<TokenId> sorted(recent.begin(), recent.end());
  std::ranges::sort(sorted);
  for (size_t begin = 0; begin < sorted.size();) {
    const auto end = std::ranges::upper_bound(sorted, sorted[begin]) - sorted.begin();
    if (!is_barred(chunk, sorted[begin])) {
      lists.tokens.push_back(sorted[begin]);
      lists.counts.push_back(static_cast<int32_t>(end - static_cast<int64_t>(begin)));
    }
    begin = static_cast<size_t>(end);
  }
}

bool is_penalized(const TokenChunk& chunk) {
  return chunk.sampling != nullptr && (has_penalty(*chunk.sampling) || !chunk.barred.empty());
}

void list_draw(const TokenChunk& chunk, int64_t draw, SamplingLists& lists) {
  const SamplingParams& params = *chunk.sampling;
  lists.temperature.push_back(static_cast<float>(params.temperature));
  lists.top_k.push_back(static_cast<int32_t>(params.top_k));
  lists.top_p.push_back(static_cast<float>(params.top_p));
  lists.min_p.push_back(static_cast<float>(params.min_p));
  const uint64_t bits = random_bits(params.seed, static_cast<uint64_t>(chunk.answer_index + draw));
  lists.random.push_back(static_cast<int32_t>(bits));
  lists.random.push_back(static_cast<int32_t>(bits >> 32));
}

void list_penalty(const TokenChunk& chunk, PenaltyLists& lists) {
  const SamplingParams& params = *chunk.sampling;
  if (has_penalty(params)) list_recent_tokens(chunk, lists);
  for (const TokenId token : barred_tokens(chunk)) {
    lists.tokens.push_back(token);
    lists.counts.push_back(kBarredCount);
  }
  lists.offsets.push_back(static_cast<int32_t>(lists.tokens.size()));
  lists.repetition.push_back(static_cast<float>(params.repetition_penalty));
  lists.frequency.push_back(static_cast<float>(params.frequency_penalty));
  lists.presence.push_back(static_cast<float>(params.presence_penalty));
}

}  // namespace

SamplingLists list_sampling(std::span<const TokenChunk> step) {
  SamplingLists lists;
  for (const TokenChunk& chunk : step) {
    for (int64_t draw = 0; draw < chunk.num_draws(); ++draw) list_draw(chunk, draw, lists);
  }
  return lists;
}

PenaltyLists list_penalties(std::span<const TokenChunk> step) {
  PenaltyLists lists;
  lists.offsets.push_back(0);
  for (const TokenChunk& chunk : step) {
    for (int64_t draw = 0; draw < chunk.num_draws(); ++draw) list_penalty(chunk, lists);
  }
  return lists;
}

bool has_penalty(std::span<const TokenChunk> step) {
  return std::ranges::any_of(step, is_penalized);
}

std::optional<int64_t> num_top_logprobs(std::span<const TokenChunk> step) {
  std::optional<int64_t> largest;
  for (const TokenChunk& chunk : step) {
    if (chunk.sampling != nullptr) largest = std::max(largest, chunk.sampling->top_logprobs);
  }
  return largest;
}

}  // namespace tessera
