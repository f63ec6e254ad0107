#include "engine/model/sampling_lists.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/model/philox.h"
#include "kernels/sampling_params.h"

namespace tessera {
namespace {

bool is_barred(const TokenChunk& chunk, TokenId token) {
  return std::ranges::find(chunk.barred, token) != chunk.barred.end();
}

// Lists tokens with their counts in time that grows with their number: penalties of models' authors
// look at whole documents, in every step.
class RecentTokens {
 public:
  // Appends each token among the last ones that the penalties look at, and how often it occurs in
  // the answer. Those of the prompt alone are listed only where repetition is penalized.
  void list(const TokenChunk& chunk, PenaltyLists& lists) {
    const SamplingParams& params = *chunk.sampling;
    const auto window = static_cast<size_t>(params.penalty_window);
    const size_t size = chunk.tokens.size();
    const auto recent = chunk.tokens.last(window == 0 ? size : std::min(window, size));
    const size_t num_answered = std::min(static_cast<size_t>(chunk.answer_index), recent.size());
    const auto answer = recent.last(num_answered);
    const auto listed = params.repetition_penalty == 1.0 ? answer : recent;
    if (listed.empty()) return;
    const auto num_ids = static_cast<size_t>(*std::ranges::max_element(listed)) + 1;
    if (marks_.size() < num_ids) marks_.resize(num_ids);
    for (const TokenId token : listed) marks_[static_cast<size_t>(token)] = 1;
    for (const TokenId token : answer) ++marks_[static_cast<size_t>(token)];
    for (const TokenId token : listed) {
      const int32_t mark = std::exchange(marks_[static_cast<size_t>(token)], 0);
      if (mark == 0 || is_barred(chunk, token)) continue;
      lists.tokens.push_back(token);
      lists.counts.push_back(mark - 1);
    }
  }

 private:
  // By token: 0 if it is not to be listed, or was already; otherwise one more than its count.
  // Zeros between calls.
  std::vector<int32_t> marks_;
};

constexpr float kSmallestTopP = std::numeric_limits<float>::min();

bool is_penalized(const TokenChunk& chunk) {
  return chunk.sampling != nullptr && (has_penalty(*chunk.sampling) || !chunk.barred.empty());
}

void list_draw(const TokenChunk& chunk, int64_t draw, SamplingLists& lists) {
  const SamplingParams& params = *chunk.sampling;
  lists.temperature.push_back(static_cast<float>(params.temperature));
  lists.top_k.push_back(static_cast<int32_t>(std::max<int64_t>(params.top_k, 0)));
  // Above 0, as kernels expect, also where the nearest float32 is 0: the likeliest token alone.
  lists.top_p.push_back(std::max(static_cast<float>(params.top_p), kSmallestTopP));
  lists.min_p.push_back(static_cast<float>(params.min_p));
  const uint64_t bits = random_bits(params.seed, static_cast<uint64_t>(chunk.answer_index + draw));
  lists.random.push_back(static_cast<int32_t>(bits));
  lists.random.push_back(static_cast<int32_t>(bits >> 32));
}

void list_penalty(const TokenChunk& chunk, RecentTokens& recent, PenaltyLists& lists) {
  const SamplingParams& params = *chunk.sampling;
  if (has_penalty(params)) recent.list(chunk, lists);
  for (const TokenId token : chunk.barred) {
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
  RecentTokens recent;
  lists.offsets.push_back(0);
  for (const TokenChunk& chunk : step) {
    for (int64_t draw = 0; draw < chunk.num_draws(); ++draw) list_penalty(chunk, recent, lists);
  }
  return lists;
}

bool has_penalized_draw(std::span<const TokenChunk> step) {
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
