#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/cpu/attention_block.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// One thread's work. Ranges are half open. The rows of a KV head are the queries of the sequence
// times the query heads of the group, heads fastest: row r is query r / group, head r % group of
// the group. So all of them read a key once, and decoding, with one query, does for the whole
// group.
struct WorkItem {
  int64_t sequence;
  int64_t kv_head;
  int64_t row_begin, row_end;  // at most kBlockRows
  int64_t key_begin, key_end;  // tokens of the context
  int64_t part, num_parts;     // which part of the sequence's keys, of how many
};

// Adds to `total` what another part has accumulated: both [head_dim + 2], as in partial().
void merge(const float* other, int64_t head_dim, float* total) {
  float& largest_of_total = total[head_dim];
  const float largest = std::max(largest_of_total, other[head_dim]);
  const float factor = std::exp2(largest_of_total - largest);
  const float other_factor = std::exp2(other[head_dim] - largest);
  for (int64_t d = 0; d < head_dim; ++d) total[d] = total[d] * factor + other[d] * other_factor;
  largest_of_total = largest;
  total[head_dim + 1] = total[head_dim + 1] * factor + other[head_dim + 1] * other_factor;
}

// out = accumulated / sum, or zeros when no key has been seen.
void normalize(const float* accumulated, int64_t head_dim, float sum, float* out) {
  if (sum == 0.0f) {
    std::fill_n(out, head_dim, 0.0f);
    return;
  }
  for (int64_t d = 0; d < head_dim; ++d) out[d] = accumulated[d] / sum;
}

class AttentionStep {
 public:
  AttentionStep(const Tensor& out, const AttentionParams& params, bool is_batch_invariant,
                ThreadScratch& scratch);

  void run(ThreadPool& pool);

 private:
  int64_t query_begin(int64_t sequence) const { return query_starts_[sequence]; }
  int64_t query_length(int64_t sequence) const {
    return query_starts_[sequence + 1] - query_starts_[sequence];
  }
  // Where in the context the query of a row lies.
  int64_t position(int64_t sequence, int64_t row) const {
    return context_lengths_[sequence] - query_length(sequence) + row / group_;
  }
  // The keys that the row sees, [first_key, key_end); none where queries outnumber the context.
  int64_t first_key(int64_t sequence, int64_t row) const {
    const int64_t window = params_.sliding_window;
    return window == 0 ? 0 : std::max<int64_t>(0, position(sequence, row) - window + 1);
  }
  int64_t key_end(int64_t sequence, int64_t row) const {
    if (!params_.causal) return context_lengths_[sequence];
    return std::max<int64_t>(0, position(sequence, row) + 1);
  }
  int64_t part_keys(int64_t sequence) const { return kPartKeys * query_length(sequence); }
  int64_t num_parts(int64_t sequence) const {
    // Where a part ends depends on the queries.
    if (is_batch_invariant_) return 1;
    if (query_length(sequence) == 0 || query_length(sequence) > kMaxDecodeQueryLength) return 1;
    const int64_t num_keys = context_lengths_[sequence] - first_key(sequence, 0);
    return std::max<int64_t>(1, ceil_divide(num_keys, part_keys(sequence)));
  }

  // [num_tokens, num_heads, head_dim], in the query tensor and in out.
  int64_t offset(const WorkItem& item, int64_t row) const {
    const int64_t token = query_begin(item.sequence) + row / group_;
    return (token * num_heads_ + item.kv_head * group_ + row % group_) * head_dim_;
  }
  // What a part has accumulated for a row, then its largest score and its sum: [head_dim + 2].
  float* partial(const WorkItem& item, int64_t part, int64_t row) const {
    const int64_t query_part = row / group_ * item.num_parts + part;
    const int64_t head = item.kv_head * group_ + row % group_;
    return workspace_ +
           ((item.sequence * max_query_parts_ + query_part) * num_heads_ + head) * (head_dim_ + 2);
  }

  // In nanoseconds.
  double cost(const WorkItem& item) const {
    constexpr double kPerScore = 1;  // its exponential and what a tile costs
    const auto scores =
        static_cast<double>((item.row_end - item.row_begin) * (item.key_end - item.key_begin));
    return scores * (static_cast<double>(2 * head_dim_) * kNanosecondsPerMultiplyAdd + kPerScore);
  }

  std::vector<WorkItem> plan() const;
  AttentionBlock start(const WorkItem& item, int thread) const;
  void compute(const WorkItem& item, int thread) const;
  void write_row(const WorkItem& item, const AttentionBlock& block, int64_t row) const;
  void merge_parts(const WorkItem& last) const;

  const AttentionParams& params_;
  bool is_batch_invariant_;
  ThreadScratch& scratch_;
  const int32_t* query_starts_;
  const int32_t* context_lengths_;
  float* out_;
  float* workspace_ = nullptr;  // [num_sequences, max_query_parts, num_heads, head_dim + 2]
  int64_t num_heads_, num_kv_heads_, group_, head_dim_, max_query_parts_;
};

// Queries times parts of any decode, or 0 when none has more than one part. With q queries,
// q * ceil(context / (kPartKeys * q)) < ceil(context / kPartKeys) + q.
int64_t max_query_parts(int64_t max_context_length) {
  const int64_t parts = ceil_divide(max_context_length, kPartKeys);
  return parts <= 1 ? 0 : parts + kMaxDecodeQueryLength - 1;
}

AttentionStep::AttentionStep(const Tensor& out, const AttentionParams& params,
                             bool is_batch_invariant, ThreadScratch& scratch)
    : params_(params),
      is_batch_invariant_(is_batch_invariant),
      scratch_(scratch),
      query_starts_(params.batch.query_starts.as<int32_t>()),
      context_lengths_(params.batch.context_lengths.as<int32_t>()),
      out_(out.as<float>()),
      num_heads_(params.query.dim(1)),
      num_kv_heads_(params.pages.num_kv_heads()),
      group_(num_heads_ / num_kv_heads_),
      head_dim_(params.pages.head_dim()),
      max_query_parts_(max_query_parts(params.batch.max_context_length)) {
  const size_t needed =
      attention_workspace_bytes({.max_sequences = params.batch.num_sequences,
                                 .max_context_length = params.batch.max_context_length,
                                 .num_heads = num_heads_,
                                 .head_dim = head_dim_});
  if (needed == 0) return;
  CHECK(params.workspace.size_bytes() >= needed, "attention: the workspace has ",
        params.workspace.size_bytes(), " bytes, needs ", needed);
  workspace_ = params.workspace.as<float>();
}

void AttentionStep::run(ThreadPool& pool) {
  const std::vector<WorkItem> items = plan();
  if (items.empty()) return;
  double nanoseconds = 0;
  for (const WorkItem& item : items) nanoseconds += cost(item);
  pool.for_each(std::ssize(items), nanoseconds / static_cast<double>(items.size()),
                [&](int64_t i, int thread) { compute(items[static_cast<size_t>(i)], thread); });
  for (const WorkItem& item : items) {
    if (item.num_parts > 1 && item.part == item.num_parts - 1) merge_parts(item);
  }
}

std::vector<WorkItem> AttentionStep::plan() const {
  std::vector<WorkItem> items;
  for (int64_t sequence = 0; sequence < params_.batch.num_sequences; ++sequence) {
    const int64_t num_rows = query_length(sequence) * group_;
    const int64_t parts = num_parts(sequence);
    for (int64_t kv_head = 0; kv_head < num_kv_heads_; ++kv_head) {
      // Later queries see more keys: the longest work first leaves the threads evenly loaded.
      for (int64_t row_end = num_rows; row_end > 0; row_end -= kBlockRows) {
        const int64_t row_begin = std::max<int64_t>(0, row_end - kBlockRows);
        const int64_t last = key_end(sequence, row_end - 1);
        int64_t first = first_key(sequence, parts == 1 ? row_begin : 0);
        // A key is in the same tile whichever rows see it.
        if (is_batch_invariant_) first -= first % kTileKeys;
        const int64_t keys = parts == 1 ? last : part_keys(sequence);
        for (int64_t part = 0; part < parts; ++part) {
          const int64_t begin = std::min(first + part * keys, last);
          items.push_back({sequence, kv_head, row_begin, row_end, begin,
                           std::min(begin + keys, last), part, parts});
        }
      }
    }
  }
  return items;
}

AttentionBlock AttentionStep::start(const WorkItem& item, int thread) const {
  QueryRow rows[kBlockRows];
  for (int64_t row = item.row_begin; row < item.row_end; ++row) {
    rows[row - item.row_begin] = {.query = params_.query.as<float>() + offset(item, row),
                                  .first_key = first_key(item.sequence, row),
                                  .key_end = key_end(item.sequence, row)};
  }
  const std::span<const QueryRow> used(rows, static_cast<size_t>(item.row_end - item.row_begin));
  const RowLayout layout = is_batch_invariant_ ? RowLayout::kInLanes : RowLayout::kFastest;
  return start_block(used, head_dim_, {params_.scale, params_.softcap}, layout, scratch_, thread);
}

void AttentionStep::compute(const WorkItem& item, int thread) const {
  const AttentionBlock block = start(item, thread);
  const Tensor& tables = params_.batch.block_tables;
  const KeySource source{params_.pages, tables.as<int32_t>() + item.sequence * tables.dim(1),
                         item.kv_head};
  KeyTile tile;
  for (int64_t key = item.key_begin; key < item.key_end; key += kTileKeys) {
    tile.first = key;
    tile.count = std::min(kTileKeys, item.key_end - key);
    gather_tile(source, block.tile_storage, tile);
    add_tile(block, tile);
  }
  for (int64_t row = item.row_begin; row < item.row_end; ++row) write_row(item, block, row);
}

void AttentionStep::write_row(const WorkItem& item, const AttentionBlock& block,
                              int64_t row) const {
  const int64_t i = row - item.row_begin;
  const float* const accumulated = block.accumulated + i * block.row_width;
  if (item.num_parts == 1) {
    normalize(accumulated, head_dim_, block.sums[i], out_ + offset(item, row));
    return;
  }
  float* const part = partial(item, item.part, row);
  std::copy_n(accumulated, head_dim_, part);
  part[head_dim_] = block.largest[i];
  part[head_dim_ + 1] = block.sums[i];
}

// Adds up the parts of the rows of `last`, the item of their last part, in the order of the
// context.
void AttentionStep::merge_parts(const WorkItem& last) const {
  for (int64_t row = last.row_begin; row < last.row_end; ++row) {
    float* const total = partial(last, 0, row);
    for (int64_t part = 1; part <= last.part; ++part) {
      merge(partial(last, part, row), head_dim_, total);
    }
    normalize(total, head_dim_, total[head_dim_ + 1], out_ + offset(last, row));
  }
}

}  // namespace

void attention(const Tensor& out, const AttentionParams& params, bool is_batch_invariant,
               ThreadScratch& scratch, ThreadPool& pool) {
  AttentionStep(out, params, is_batch_invariant, scratch).run(pool);
}

size_t attention_workspace_bytes(const BackendLimits& limits) {
  int64_t elements = checked_multiply(
      limits.max_sequences, max_query_parts(limits.max_context_length), "attention workspace");
  elements = checked_multiply(elements, limits.num_heads, "attention workspace");
  elements = checked_multiply(elements, limits.head_dim + 2, "attention workspace");
  return checked_multiply(static_cast<size_t>(elements), sizeof(float), "attention workspace");
}

}  // namespace tessera
