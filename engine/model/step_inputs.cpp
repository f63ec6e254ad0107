#include "engine/model/step_inputs.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <ranges>
#include <vector>

#include "engine/model/attention_sizes.h"
#include "engine/model/packed_upload.h"
#include "engine/model/page_pool.h"
#include "engine/model/sampler.h"
#include "engine/model/shared_prefixes.h"

namespace tessera {
namespace {

// Block tables have places for a multiple of so many pages of each sequence, so that the shapes of
// a step's tensors change seldom (recorded_steps.h): with pages of 64 tokens every 512 tokens.
constexpr int64_t kTablePages = 8;
// Tables of more sequences would sooner outgrow the 64 KiB that travel fastest to a GPU, and such
// steps take so long that the host is never late.
constexpr size_t kMostRoundedTables = 256;

// The step as the host builds it, before it is copied to the device.
struct HostStep {
  std::vector<int32_t> token_ids;  // 0 for those that only the device knows
  // Which of the drawn tokens each of these is, as far as to the last of them; -1 for the others.
  std::vector<int32_t> drawn_ids;
  std::vector<int32_t> positions, kv_slots;
  std::vector<int32_t> query_starts = {0}, context_lengths, block_tables;
  std::vector<int32_t> sampled_rows, sampled_starts = {0};  // the latter as query_starts

  // Whether the ids are all that were drawn, as they lie on the device.
  bool takes_all_in_order(int64_t num_drawn) const {
    const auto size = static_cast<int64_t>(drawn_ids.size());
    if (size != num_drawn || drawn_ids.size() != token_ids.size()) return false;
    return std::ranges::equal(drawn_ids, std::views::iota(0, static_cast<int32_t>(size)));
  }
};

void add_chunk(HostStep& step, const TokenChunk& chunk, int64_t page_size, int64_t table_pages) {
  for (int64_t position = chunk.begin; position < chunk.end(); ++position) {
    step.token_ids.push_back(chunk.token(position).value_or(0));
    step.positions.push_back(static_cast<int32_t>(position));
    step.kv_slots.push_back(kv_slot(chunk.block_table, position, page_size));
  }
  const auto num_tokens = static_cast<int32_t>(step.positions.size());
  if (chunk.draw_index) {
    step.drawn_ids.resize(static_cast<size_t>(num_tokens), -1);
    step.drawn_ids.back() = static_cast<int32_t>(*chunk.draw_index);
  }
  step.query_starts.push_back(num_tokens);
  step.context_lengths.push_back(static_cast<int32_t>(chunk.end()));
  const auto table =
      chunk.block_table.first(std::min(chunk.block_table.size(), static_cast<size_t>(table_pages)));
  const size_t row_end = step.block_tables.size() + static_cast<size_t>(table_pages);
  step.block_tables.insert(step.block_tables.end(), table.begin(), table.end());
  step.block_tables.resize(row_end);
  for (int64_t row = num_tokens - chunk.num_draws(); row < num_tokens; ++row) {
    step.sampled_rows.push_back(static_cast<int32_t>(row));
  }
  step.sampled_starts.push_back(static_cast<int32_t>(step.sampled_rows.size()));
}

// What the step's decodes share; no groups where that is nothing or one of them has several tokens.
PrefixGroups shared_prefixes(std::span<const TokenChunk> step, const AttentionBatch& attention,
                             int64_t page_size) {
  if (attention.num_decodes < 2 || attention.max_decode_query_length != 1) return {};
  PrefixGroups groups =
      group_by_prefix(step.first(static_cast<size_t>(attention.num_decodes)), page_size);
  return groups.spared_tokens > 0 ? groups : PrefixGroups{};
}

SharedPrefixes add_groups(const PrefixGroups& groups, int64_t num_decodes, PackedUpload& inputs) {
  if (groups.lengths.empty()) return {};
  return {.group_starts = inputs.add(groups.starts),
          .lengths = inputs.add(groups.lengths),
          .own_begins = inputs.add(groups.own_begins(num_decodes)),
          .num_groups = std::ssize(groups.lengths),
          .spared_tokens = groups.spared_tokens};
}

// The sampled tokens as the only ones of their sequences; nothing where they are all tokens or
// none. All sequences are decodes then. The first of them share what they share in the whole step,
// if they have one sampled token each, and the others nothing: one more group, of length 0.
std::optional<AttentionBatch> sampled_attention(std::span<const TokenChunk> step,
                                                const HostStep& host, PrefixGroups groups,
                                                PackedUpload& inputs) {
  if (host.sampled_rows.empty() || host.sampled_rows.size() == host.token_ids.size()) return {};
  AttentionBatch attention = sampled_attention_sizes(step);
  if (!groups.lengths.empty()) {
    const auto sharing = step.first(static_cast<size_t>(groups.starts.back()));
    const auto draws_one = [](const TokenChunk& chunk) { return chunk.num_draws() == 1; };
    // Attention reads a prefix once for decodes with one token alone.
    if (attention.max_decode_query_length != 1 || !std::ranges::all_of(sharing, draws_one)) {
      return {};
    }
    const auto num_sampled = static_cast<int32_t>(host.sampled_rows.size());
    if (num_sampled > groups.starts.back()) {
      groups.starts.push_back(num_sampled);
      groups.lengths.push_back(0);
    }
  }
  attention.query_starts = inputs.add(host.sampled_starts);
  attention.shared = add_groups(groups, attention.num_decodes, inputs);
  return attention;
}

}  // namespace

StepInputs::StepInputs(Arena& arena, const StepLimits& limits, int64_t page_size)
    : page_size_(page_size), max_pages_(ceil_divide(limits.context_size, page_size)) {
  const auto padded = PackedUpload::padded_size;
  // Ids, positions and slots; lengths of contexts and, twice, of groups and of sequences' groups;
  // sampled rows and drawn ids; starts of queries, of sampled rows and, twice, of groups; sampling;
  // block tables.
  const int64_t size = 3 * padded(limits.max_tokens) + 5 * padded(limits.max_sequences) +
                       2 * padded(limits.max_draws()) + 4 * padded(limits.max_sequences + 1) +
                       sampling_elements(limits.max_draws()) +
                       padded(checked_multiply(limits.max_sequences, max_pages_, "block tables"));
  buffer_ = arena.take("step inputs", DType::kInt32, {size});
}

ForwardBatch StepInputs::prepare(std::span<const TokenChunk> step, const Tensor& drawn,
                                 Operations& operations) {
  ForwardBatch batch;
  batch.attention = attention_sizes(step);
  // Not for the longest context that there may be: of hundreds of sequences, such tables would be
  // megabytes.
  const int64_t needed_pages = ceil_divide(batch.attention.max_context_length, page_size_);
  const int64_t unit = step.size() <= kMostRoundedTables ? kTablePages : 1;
  const int64_t table_pages = std::min(ceil_divide(needed_pages, unit) * unit, max_pages_);
  HostStep host;
  for (const TokenChunk& chunk : step) add_chunk(host, chunk, page_size_, table_pages);
  const bool takes_all = host.takes_all_in_order(drawn.empty() ? 0 : drawn.dim(0));
  if (takes_all) host.drawn_ids.clear();
  PackedUpload inputs(buffer_);
  batch.token_ids = takes_all ? drawn : inputs.add(host.token_ids);
  const Tensor drawn_ids = inputs.add(host.drawn_ids);
  batch.positions = inputs.add(host.positions);
  batch.kv_slots = inputs.add(host.kv_slots);
  batch.attention.query_starts = inputs.add(host.query_starts);
  batch.attention.context_lengths = inputs.add(host.context_lengths);
  const PrefixGroups groups = shared_prefixes(step, batch.attention, page_size_);
  batch.attention.shared = add_groups(groups, batch.attention.num_decodes, inputs);
  batch.sampled_rows = inputs.add(host.sampled_rows);
  batch.sampling = add_sampling(step, inputs);
  batch.attention.block_tables =
      inputs.add(host.block_tables, {batch.attention.num_sequences, table_pages});
  if (const auto sampled = sampled_attention(step, host, groups, inputs)) {
    batch.sampled_attention = *sampled;
    batch.sampled_attention.context_lengths = batch.attention.context_lengths;
    batch.sampled_attention.block_tables = batch.attention.block_tables;
  }
  inputs.upload(operations.device());
  if (!host.drawn_ids.empty()) {
    operations.take_ids(batch.token_ids.slice(0, drawn_ids.dim(0)), drawn_ids, drawn);
  }
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
