#include "engine/forward_batch.h"

#include <algorithm>
#include <numeric>

#include "engine/host_tensor.h"

namespace tessera {
namespace {

// The step as the host builds it, before it is copied to the device.
struct HostStep {
  std::vector<int32_t> token_ids, positions, kv_slots;
  std::vector<int32_t> query_starts = {0}, context_lengths, block_tables, sampled_rows;
};

void add_sequence(HostStep& step, const ScheduledSequence& scheduled, const KvCache& cache,
                  int64_t max_pages) {
  const Sequence& sequence = *scheduled.sequence;
  const int64_t begin = sequence.num_cached();
  for (int64_t position = begin; position < begin + scheduled.num_tokens; ++position) {
    step.token_ids.push_back(sequence.tokens()[static_cast<size_t>(position)]);
    step.positions.push_back(static_cast<int32_t>(position));
    step.kv_slots.push_back(cache.slot(sequence.block_table(), position));
  }
  const auto num_tokens = static_cast<int32_t>(step.token_ids.size());
  step.query_starts.push_back(num_tokens);
  step.context_lengths.push_back(static_cast<int32_t>(begin + scheduled.num_tokens));
  const BlockTable& table = sequence.block_table();
  const size_t row_begin = step.block_tables.size();
  step.block_tables.resize(row_begin + static_cast<size_t>(max_pages));
  std::ranges::copy(table, step.block_tables.begin() + static_cast<int64_t>(row_begin));
  if (scheduled.completes()) step.sampled_rows.push_back(num_tokens - 1);
}

}  // namespace

StepInputs::StepInputs(Arena& arena, const BackendLimits& limits, int64_t page_size) {
  const auto take = [&](std::string_view name, const Shape& shape) {
    return arena.take(name, DType::kInt32, shape);
  };
  token_ids_ = take("token ids", {limits.max_tokens});
  positions_ = take("positions", {limits.max_tokens});
  kv_slots_ = take("KV slots", {limits.max_tokens});
  query_starts_ = take("query starts", {limits.max_sequences + 1});
  context_lengths_ = take("context lengths", {limits.max_sequences});
  block_tables_ = take("block tables",
                       {limits.max_sequences, ceil_divide(limits.max_context_length, page_size)});
  sampled_rows_ = take("sampled rows", {limits.max_sequences});
}

ForwardBatch StepInputs::prepare(std::span<const ScheduledSequence> scheduled, const KvCache& cache,
                                 Backend& backend) {
  HostStep step;
  ForwardBatch batch;
  batch.attention.num_sequences = static_cast<int64_t>(scheduled.size());
  bool is_leading = true;
  for (const ScheduledSequence& item : scheduled) {
    add_sequence(step, item, cache, block_tables_.dim(1));
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
  const auto copy = [&](const Tensor& buffer, const std::vector<int32_t>& values) {
    const Tensor destination = buffer.slice(0, static_cast<int64_t>(values.size()));
    backend.upload(destination, host_tensor(values));
    return destination;
  };
  batch.token_ids = copy(token_ids_, step.token_ids);
  batch.positions = copy(positions_, step.positions);
  batch.kv_slots = copy(kv_slots_, step.kv_slots);
  batch.attention.query_starts = copy(query_starts_, step.query_starts);
  batch.attention.context_lengths = copy(context_lengths_, step.context_lengths);
  batch.sampled_rows = copy(sampled_rows_, step.sampled_rows);
  batch.attention.block_tables = block_tables_.slice(0, batch.attention.num_sequences);
  backend.upload(batch.attention.block_tables,
                 host_tensor(step.block_tables, batch.attention.block_tables.shape));
  return batch;
}

Tensor StepInputs::rows(int64_t begin, int64_t end, Backend& backend) {
  std::vector<int32_t> values(static_cast<size_t>(end - begin));
  std::iota(values.begin(), values.end(), static_cast<int32_t>(begin));
  const Tensor destination = sampled_rows_.slice(0, end - begin);
  backend.upload(destination, host_tensor(values));
  return destination;
}

}  // namespace tessera
