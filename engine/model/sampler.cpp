#include "engine/model/sampler.h"

#include <algorithm>
#include <map>

#include "engine/model/philox.h"

namespace tessera {
namespace {

// How often each token occurs among the last ones that the penalties look at.
std::map<TokenId, int32_t> count_recent_tokens(const Sequence& sequence) {
  const std::vector<TokenId>& tokens = sequence.tokens();
  const auto window = static_cast<size_t>(sequence.params().penalty_window);
  const size_t begin = window == 0 || window > tokens.size() ? 0 : tokens.size() - window;
  std::map<TokenId, int32_t> counts;
  for (size_t i = begin; i < tokens.size(); ++i) ++counts[tokens[i]];
  return counts;
}

// One number per sequence.
template <typename T, typename Field>
std::vector<T> each(std::span<const Sequence* const> sequences, Field field) {
  std::vector<T> values;
  for (const Sequence* sequence : sequences) {
    values.push_back(static_cast<T>(field(sequence->params())));
  }
  return values;
}

// The same, copied into the front of `buffer`.
template <typename T, typename Field>
Tensor upload_each(const Tensor& buffer, std::span<const Sequence* const> sequences, Device& device,
                   Field field) {
  const std::vector<T> values = each<T>(sequences, field);
  const Tensor destination = buffer.slice(0, static_cast<int64_t>(values.size()));
  device.upload_inputs(destination, host_tensor(values));
  return destination;
}

std::vector<const Sequence*> completing(std::span<const ScheduledSequence> scheduled) {
  std::vector<const Sequence*> sequences;
  for (const ScheduledSequence& item : scheduled) {
    if (item.completes) sequences.push_back(item.sequence);
  }
  return sequences;
}

}  // namespace

SamplingBatch add_sampling(std::span<const ScheduledSequence> scheduled, PackedUpload& inputs) {
  std::vector<int32_t> random;
  for (const ScheduledSequence& item : scheduled) {
    if (!item.completes) continue;
    const int64_t index = item.end() - item.sequence->result().prompt_tokens;  // of the new token
    const uint64_t bits = random_bits(item.sequence->params().seed, static_cast<uint64_t>(index));
    random.push_back(static_cast<int32_t>(bits));
    random.push_back(static_cast<int32_t>(bits >> 32));
  }
  const std::vector<const Sequence*> sequences = completing(scheduled);
  using P = const SamplingParams&;
  return {.temperature = inputs.add(each<float>(sequences, [](P p) { return p.temperature; })),
          .top_k = inputs.add(each<int32_t>(sequences, [](P p) { return p.top_k; })),
          .top_p = inputs.add(each<float>(sequences, [](P p) { return p.top_p; })),
          .min_p = inputs.add(each<float>(sequences, [](P p) { return p.min_p; })),
          .random = inputs.add(random, {static_cast<int64_t>(sequences.size()), 2})};
}

int64_t sampling_elements(int64_t max_sequences) {
  return 4 * PackedUpload::padded_size(max_sequences) +
         PackedUpload::padded_size(2 * max_sequences);
}

Sampler::Sampler(Arena& arena, int64_t max_sequences, int64_t max_listed) {
  const auto take = [&](std::string_view name, DType dtype, int64_t size) {
    return arena.take(name, dtype, {size});
  };
  tokens_ = take("sampled tokens", DType::kInt32, max_sequences);
  penalty_offsets_ = take("penalty offsets", DType::kInt32, max_sequences + 1);
  const int64_t list_size = checked_multiply(max_sequences, max_listed, "penalty list");
  penalty_tokens_ = take("penalty tokens", DType::kInt32, list_size);
  penalty_counts_ = take("penalty counts", DType::kInt32, list_size);
  repetition_ = take("repetition penalty", DType::kFloat32, max_sequences);
  frequency_ = take("frequency penalty", DType::kFloat32, max_sequences);
  presence_ = take("presence penalty", DType::kFloat32, max_sequences);
}

Tensor Sampler::sample(const Tensor& logits, std::span<const ScheduledSequence> scheduled,
                       SamplingBatch sampling, int64_t num_candidates, Operations& operations) {
  const std::vector<const Sequence*> sequences = completing(scheduled);
  if (std::ranges::any_of(sequences, [](const Sequence* s) { return has_penalty(s->params()); })) {
    penalize(logits, sequences, operations);
  }
  const Tensor tokens = tokens_.slice(0, static_cast<int64_t>(sequences.size()));
  sampling.num_candidates = num_candidates;
  operations.sample(tokens, logits, sampling);
  return tokens;
}

void Sampler::penalize(const Tensor& logits, std::span<const Sequence* const> sequences,
                       Operations& operations) {
  Device& device = operations.device();
  std::vector<int32_t> offsets = {0}, tokens, counts;
  for (const Sequence* sequence : sequences) {
    if (has_penalty(sequence->params())) {
      for (const auto& [token, count] : count_recent_tokens(*sequence)) {
        tokens.push_back(token);
        counts.push_back(count);
      }
    }
    offsets.push_back(static_cast<int32_t>(tokens.size()));
  }
  const auto copy = [&](const Tensor& buffer, const std::vector<int32_t>& values) {
    const Tensor destination = buffer.slice(0, static_cast<int64_t>(values.size()));
    device.upload_inputs(destination, host_tensor(values));
    return destination;
  };
  using P = const SamplingParams&;
  operations.penalize(logits,
                      {.offsets = copy(penalty_offsets_, offsets),
                       .tokens = copy(penalty_tokens_, tokens),
                       .counts = copy(penalty_counts_, counts),
                       .repetition = upload_each<float>(repetition_, sequences, device,
                                                        [](P p) { return p.repetition_penalty; }),
                       .frequency = upload_each<float>(frequency_, sequences, device,
                                                       [](P p) { return p.frequency_penalty; }),
                       .presence = upload_each<float>(presence_, sequences, device,
                                                      [](P p) { return p.presence_penalty; })});
}

}  // namespace tessera
