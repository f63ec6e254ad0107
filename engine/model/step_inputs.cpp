#include "engine/model/step_inputs.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/model/packed_upload.h"
#include "engine/model/page_pool.h"
#include "engine/model/sampler.h"

namespace tessera {
namespace {

// The step as the host builds it, before it is copied to the device.
struct HostStep {
  std::vector<int32_t> token_ids;  // those that the host knows
  std::vector<int32_t> positions, kv_slots;
  std::vector<int32_t> query_starts = {0}, context_lengths, block_tables, sampled_rows;

  bool knows_all_ids() const { return token_ids.size() == positions.size(); }
};

void add_chunk(HostStep& step, const TokenChunk& chunk, int64_t page_size, int64_t max_pages) {
  for (int64_t position = chunk.begin; position < chunk.end(); ++position) {
    if (position < static_cast<int64_t>(chunk.tokens.size())) {
      step.token_ids.push_back(chunk.tokens[static_cast<size_t>(position)]);
    }
    step.positions.push_back(static_cast<int32_t>(position));
    step.kv_slots.push_back(kv_slot(chunk.block_table, position, page_size));
  }
  const auto num_tokens = static_cast<int32_t>(step.positions.size());
  step.query_starts.push_back(num_tokens);
  step.context_lengths.push_back(static_cast<int32_t>(chunk.end()));
  const size_t row_begin = step.block_tables.size();
  step.block_tables.resize(row_begin + static_cast<size_t>(max_pages));
  std::ranges::copy(chunk.block_table, step.block_tables.begin() + static_cast<int64_t>(row_begin));
  if (chunk.sampling != nullptr) step.sampled_rows.push_back(num_tokens - 1);
}

// The sizes of the step's attention.
AttentionBatch attention_sizes(std::span<const TokenChunk> step) {
  AttentionBatch attention;
  attention.num_sequences = static_cast<int64_t>(step.size());
  bool is_leading = true;
  for (const TokenChunk& chunk : step) {
    is_leading = is_leading && chunk.num_tokens <= kMaxDecodeQueryLength;
    if (is_leading) {
      ++attention.num_decodes;
      attention.max_decode_query_length =
          std::max(attention.max_decode_query_length, chunk.num_tokens);
    }
    attention.max_query_length = std::max(attention.max_query_length, chunk.num_tokens);
    attention.max_context_length = std::max(attention.max_context_length, chunk.end());
  }
  return attention;
}

}  // namespace

StepInputs::StepInputs(Arena& arena, const StepLimits& limits, int64_t page_size)
    : page_size_(page_size), max_pages_(ceil_divide(limits.context_size, page_size)) {
  const auto padded = PackedUpload::padded_size;
  // Ids, positions and slots; lengths and sampled rows; query starts; sampling; block tables.
  const int64_t size = 3 * padded(limits.max_tokens) + 2 * padded(limits.max_sequences) +
                       padded(limits.max_sequences + 1) + sampling_elements(limits.max_sequences) +
                       padded(checked_multiply(limits.max_sequences, max_pages_, "block tables"));
  buffer_ = arena.take("step inputs", DType::kInt32, {size});
}

ForwardBatch StepInputs::prepare(std::span<const TokenChunk> step, const Tensor& drawn,
                                 Device& device) {
  HostStep host;
  for (const TokenChunk& chunk : step) add_chunk(host, chunk, page_size_, max_pages_);
  ForwardBatch batch;
  batch.attention = attention_sizes(step);
  PackedUpload inputs(buffer_);
  batch.token_ids = host.knows_all_ids() ? inputs.add(host.token_ids) : drawn;
  CHECK(batch.token_ids.dim(0) == static_cast<int64_t>(host.positions.size()), "a step of ",
        host.positions.size(), " tokens has ", batch.token_ids.dim(0), " ids");
  batch.positions = inputs.add(host.positions);
  batch.kv_slots = inputs.add(host.kv_slots);
  batch.attention.query_starts = inputs.add(host.query_starts);
  batch.attention.context_lengths = inputs.add(host.context_lengths);
  batch.sampled_rows = inputs.add(host.sampled_rows);
  batch.sampling = add_sampling(step, inputs);
  batch.attention.block_tables =
      inputs.add(host.block_tables, {batch.attention.num_sequences, max_pages_});
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
