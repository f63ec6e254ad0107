#include "engine/model/sampler.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/model/host_tensor.h"
#include "engine/model/sampling_lists.h"

namespace tessera {

SamplingBatch add_sampling(std::span<const TokenChunk> step, PackedUpload& inputs) {
  const SamplingLists lists = list_sampling(step);
  return {.temperature = inputs.add(lists.temperature),
          .top_k = inputs.add(lists.top_k),
          .top_p = inputs.add(lists.top_p),
          .min_p = inputs.add(lists.min_p),
          .random = inputs.add(lists.random, {lists.num_tokens(), 2})};
}

int64_t sampling_elements(int64_t max_draws) {
  return 4 * PackedUpload::padded_size(max_draws) + PackedUpload::padded_size(2 * max_draws);
}

Sampler::Sampler(Arena& arena, int64_t max_draws, int64_t max_penalized_tokens) {
  const auto take = [&](std::string_view name, DType dtype, int64_t size) {
    return arena.take(name, dtype, {size});
  };
  tokens_ = take("sampled tokens", DType::kInt32, max_draws);
  penalty_offsets_ = take("penalty offsets", DType::kInt32, max_draws + 1);
  penalty_tokens_ = take("penalty tokens", DType::kInt32, max_penalized_tokens);
  penalty_counts_ = take("penalty counts", DType::kInt32, max_penalized_tokens);
  before_penalties_ = take("logits before penalties", DType::kFloat32, max_penalized_tokens);
  repetition_ = take("repetition penalty", DType::kFloat32, max_draws);
  frequency_ = take("frequency penalty", DType::kFloat32, max_draws);
  presence_ = take("presence penalty", DType::kFloat32, max_draws);
  logprobs_ = take("log-probabilities", DType::kFloat32, max_draws);
  const int64_t max_top = max_draws * kTopLogprobsLimits.high;
  top_tokens_ = take("most probable tokens", DType::kInt32, max_top);
  top_logprobs_ = take("their log-probabilities", DType::kFloat32, max_top);
}

Tensor Sampler::sample(const Tensor& logits, std::span<const TokenChunk> step,
                       SamplingBatch sampling, int64_t num_candidates, Operations& operations) {
  std::optional<PenaltyBatch> penalties;
  if (has_penalized_draw(step)) penalties = penalize(logits, step, operations);
  const Tensor tokens = tokens_.slice(0, logits.dim(0));
  sampling.num_candidates = num_candidates;
  operations.sample(tokens, logits, sampling);
  if (const std::optional<int64_t> num_top = num_top_logprobs(step)) {
    if (penalties) operations.restore_penalized(logits, *penalties);
    logprob_batch_ = logprob_batch(tokens, std::min(*num_top, num_candidates));
    logprob_batch_.num_candidates = num_candidates;
    operations.logprobs(logits, logprob_batch_);
  }
  return tokens;
}

PenaltyBatch Sampler::penalize(const Tensor& logits, std::span<const TokenChunk> step,
                               Operations& operations) {
  const auto copy = [&](const Tensor& buffer, const auto& values) {
    const Tensor destination = buffer.slice(0, static_cast<int64_t>(values.size()));
    operations.device().upload_inputs(destination, host_tensor(values));
    return destination;
  };
  const PenaltyLists lists = list_penalties(step);
  PenaltyBatch penalties = {.offsets = copy(penalty_offsets_, lists.offsets),
                            .tokens = copy(penalty_tokens_, lists.tokens),
                            .counts = copy(penalty_counts_, lists.counts),
                            .repetition = copy(repetition_, lists.repetition),
                            .frequency = copy(frequency_, lists.frequency),
                            .presence = copy(presence_, lists.presence)};
  if (num_top_logprobs(step)) {
    penalties.before = before_penalties_.slice(0, penalties.tokens.dim(0));
  }
  operations.penalize(logits, penalties);
  return penalties;
}

LogprobBatch Sampler::logprob_batch(const Tensor& tokens, int64_t num_top) const {
  const int64_t num_tokens = tokens.dim(0);
  const auto rows_of_top = [&](const Tensor& buffer) {
    return buffer.slice(0, num_tokens * num_top).reshape({num_tokens, num_top});
  };
  return {.tokens = tokens,
          .logprobs = logprobs_.slice(0, num_tokens),
          .top_tokens = rows_of_top(top_tokens_),
          .top_logprobs = rows_of_top(top_logprobs_)};
}

void Sampler::download_logprobs(std::span<DrawnToken> tokens, Device& device) const {
  const int64_t num_top = logprob_batch_.top_tokens.dim(1);
  std::vector<float> logprobs(tokens.size());
  std::vector<int32_t> top_tokens(tokens.size() * static_cast<size_t>(num_top));
  std::vector<float> top_logprobs(top_tokens.size());
  device.download(host_tensor(logprobs), logprob_batch_.logprobs);
  if (num_top > 0) {
    const Shape shape{std::ssize(tokens), num_top};
    device.download(host_tensor(top_tokens, shape), logprob_batch_.top_tokens);
    device.download(host_tensor(top_logprobs, shape), logprob_batch_.top_logprobs);
  }
  size_t i = 0;
  for (size_t row = 0; row < tokens.size(); ++row) {
    TokenLogprobs& own = tokens[row].logprobs.emplace();
    own.logprob = logprobs[row];
    for (int64_t rank = 0; rank < num_top; ++rank, ++i) {
      own.top.push_back({.token = top_tokens[i], .logprob = top_logprobs[i]});
    }
  }
}

}  // namespace tessera
