#include "engine/model/sampler.h"

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
  repetition_ = take("repetition penalty", DType::kFloat32, max_draws);
  frequency_ = take("frequency penalty", DType::kFloat32, max_draws);
  presence_ = take("presence penalty", DType::kFloat32, max_draws);
}

Tensor Sampler::sample(const Tensor& logits, std::span<const TokenChunk> step,
                       SamplingBatch sampling, int64_t num_candidates, Operations& operations) {
  if (has_penalty(step)) penalize(logits, step, operations);
  const Tensor tokens = tokens_.slice(0, logits.dim(0));
  sampling.num_candidates = num_candidates;
  operations.sample(tokens, logits, sampling);
  return tokens;
}

void Sampler::penalize(const Tensor& logits, std::span<const TokenChunk> step,
                       Operations& operations) {
  const auto copy = [&](const Tensor& buffer, const auto& values) {
    const Tensor destination = buffer.slice(0, static_cast<int64_t>(values.size()));
    operations.device().upload_inputs(destination, host_tensor(values));
    return destination;
  };
  const PenaltyLists lists = list_penalties(step);
  operations.penalize(logits, {.offsets = copy(penalty_offsets_, lists.offsets),
                               .tokens = copy(penalty_tokens_, lists.tokens),
                               .counts = copy(penalty_counts_, lists.counts),
                               .repetition = copy(repetition_, lists.repetition),
                               .frequency = copy(frequency_, lists.frequency),
                               .presence = copy(presence_, lists.presence)});
}

}  // namespace tessera
