#include "engine/model/forward_batch.h"

#include <algorithm>
#include <numeric>

#include "engine/model/packed_upload.h"
#include "engine/model/sampler.h"

namespace tessera {
namespace {

// The step as the host builds it, before it is copied to the device.
struct HostStep {
  std::vector<int32_t> token_ids;  // those that the host knows
  std::vector<int32_t> positions, kv_slots;
  std::vector<int32_t> query_starts = {0}, context_lengths, block_tables, sampled_rows;
};

void add_sequence(HostStep& step, const ScheduledSequence& scheduled, const KvCache& cache,
                  int64_t max_pages) {
  const Sequence& sequence = *scheduled.sequence;
  for (int64_t position = scheduled.begin; position < scheduled.end(); ++position) {
    if (position < sequence.num_tokens()) {
      step.token_ids.push_back(sequence.tokens()[static_cast<size_t>(position)]);
    }
    step.positions.push_back(static_cast<int32_t>(position));
    step.kv_slots.push_back(cache.slot(sequence.block_table(), position));
  }
  const auto num_tokens = static_cast<int32_t>(step.positions.size());
  step.query_starts.push_back(num_tokens);
  step.context_lengths.push_back(static_cast<int32_t>(scheduled.end()));
  const BlockTable& table = sequence.block_table();
  const size_t row_begin = step.block_tables.size();
  step.block_tables.resize(row_begin + static_cast<size_t>(max_pages));
  std::ranges::copy(table, step.block_tables.begin() + static_cast<int64_t>(row_begin));
  if (scheduled.completes) step.sampled_rows.push_back(num_tokens - 1);
}

}  // namespace

StepInputs::StepInputs(Arena& arena, const BackendLimits& limits, int64_t page_size)
    : max_pages_(ceil_divide(limits.max_context_length, page_size)) {
  const auto padded = PackedUpload::padded_size;
  // Ids, positions and slots; lengths and sampled rows; query starts; sampling; block tables.
  const int64_t size = 3 * padded(limits.max_tokens) + 2 * padded(limits.max_sequences) +
                       padded(limits.max_sequences + 1) + sampling_elements(limits.max_sequences) +
                       padded(checked_multiply(limits.max_sequences, max_pages_, "block tables"));
  buffer_ = arena.take("step inputs", DType::kInt32, {size});
}

ForwardBatch StepInputs::prepare(std::span<const ScheduledSequence> scheduled,
                                 const Tensor& sampled, const KvCache& cache, Device& device) {
  HostStep step;
  ForwardBatch batch;
  batch.attention.num_sequences = static_cast<int64_t>(scheduled.size());
  bool is_leading = true;
  for (const ScheduledSequence& item : scheduled) {
    add_sequence(step, item, cache, max_pages_);
    AttentionBatch& attention = batch.attention;
    is_leading = is_leading && item.num_tokens <= kMaxDecodeQueryLength;
    if (is_leading) {
      ++attention.num_decodes;
      attention.max_decode_query_length =
          std::max(attention.max_decode_query_length, item.num_tokens);
    }
    attention.max_query_length = std::max(attention.max_query_length, item.num_tokens);
    attention.max_context_length =
        std::max<int64_t>(attention.max_context_length, step.context_lengths.back());
  }
  PackedUpload inputs(buffer_);
  batch.token_ids = sampled.empty() ? inputs.add(step.token_ids) : sampled;
  CHECK(batch.token_ids.dim(0) == static_cast<int64_t>(step.positions.size()), "a step of ",
        step.positions.size(), " tokens has ", batch.token_ids.dim(0), " ids");
  batch.positions = inputs.add(step.positions);
  batch.kv_slots = inputs.add(step.kv_slots);
  batch.attention.query_starts = inputs.add(step.query_starts);
  batch.attention.context_lengths = inputs.add(step.context_lengths);
  batch.sampled_rows = inputs.add(step.sampled_rows);
  batch.sampling = add_sampling(scheduled, inputs);
  batch.attention.block_tables =
      inputs.add(step.block_tables, {batch.attention.num_sequences, max_pages_});
  inputs.upload(device);
  return batch;
}

Tensor StepInputs::rows(int64_t begin, int64_t end, Device& device) {
  std::vector<int32_t> values(static_cast<size_t>(end - begin));
  std::iota(values.begin(), values.end(), static_cast<int32_t>(begin));
  PackedUpload rows(buffer_);
  const Tensor destination = rows.add(values);
  rows.upload(device);
  return destination;
}

}  // namespace tessera
