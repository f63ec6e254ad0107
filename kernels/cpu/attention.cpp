#include "kernels/cpu/attention.h"

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/cpu/attention_tile.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// Rows that share the keys and values in a core's cache. The rows of a KV head are the queries of
// the sequence times the query heads of the group, heads fastest: row r is query r / group, head
// r % group of the group. So decoding, with one query, still uses each key for the whole group.
constexpr int64_t kTileRows = 64;

// Keys of one part of a decode, for each of its queries. With few queries per sequence only the
// context can be divided among threads; how depends on the sequence alone, so that results do not
// depend on the threads. More queries get longer parts, so that partial results take no more room.
constexpr int64_t kPartKeys = 1024;

// One thread's work. Ranges are half open.
struct WorkItem {
  int64_t sequence;
  int64_t kv_head;
  int64_t row_begin, row_end;  // at most kTileRows
  int64_t key_begin, key_end;  // tokens of the context
  int64_t part, num_parts;     // which part of the sequence's keys, of how many
};

// One row of a work item.
struct TileRow {
  const float* query;  // [head_dim]
  float* accumulated;  // [head_dim]
  int64_t first_key, key_end;
  RunningSoftmax state = {};
};

class AttentionStep {
 public:
  AttentionStep(const Tensor& out, const AttentionParams& params);

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
  float* accumulated(const WorkItem& item, int64_t row) const {
    if (item.num_parts == 1) return out_ + offset(item, row);
    return partial(item, item.part, row);
  }

  // In nanoseconds.
  double cost(const WorkItem& item) const {
    constexpr double kPerScore = 1;  // its exponential and what a tile costs
    const auto scores =
        static_cast<double>((item.row_end - item.row_begin) * (item.key_end - item.key_begin));
    return scores * (static_cast<double>(2 * head_dim_) * kNanosecondsPerMultiplyAdd + kPerScore);
  }

  std::vector<WorkItem> plan() const;
  void compute(const WorkItem& item) const;
  void add_keys(const WorkItem& item, int64_t key, int64_t count, std::span<TileRow> rows) const;
  void merge_parts(const WorkItem& last) const;

  const AttentionParams& params_;
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

AttentionStep::AttentionStep(const Tensor& out, const AttentionParams& params)
    : params_(params),
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
                [&](int64_t i) { compute(items[static_cast<size_t>(i)]); });
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
      for (int64_t row_end = num_rows; row_end > 0; row_end -= kTileRows) {
        const int64_t row_begin = std::max<int64_t>(0, row_end - kTileRows);
        const int64_t last = key_end(sequence, row_end - 1);
        const int64_t first = first_key(sequence, parts == 1 ? row_begin : 0);
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

void AttentionStep::compute(const WorkItem& item) const {
  TileRow rows[kTileRows];
  const std::span<TileRow> used(rows, static_cast<size_t>(item.row_end - item.row_begin));
  for (int64_t row = item.row_begin; row < item.row_end; ++row) {
    rows[row - item.row_begin] = {.query = params_.query.as<float>() + offset(item, row),
                                  .accumulated = accumulated(item, row),
                                  .first_key = first_key(item.sequence, row),
                                  .key_end = key_end(item.sequence, row)};
    std::fill_n(accumulated(item, row), head_dim_, 0.0f);
  }
  const int64_t page_size = params_.pages.page_size();
  for (int64_t key = item.key_begin; key < item.key_end;) {
    const int64_t count = std::min({kTileKeys, page_size - key % page_size, item.key_end - key});
    add_keys(item, key, count, used);
    key += count;
  }
  for (const TileRow& row : used) {
    if (item.num_parts == 1) {
      normalize(row.accumulated, head_dim_, row.state.sum, row.accumulated);
    } else {
      row.accumulated[head_dim_] = row.state.largest;
      row.accumulated[head_dim_ + 1] = row.state.sum;
    }
  }
}

// Keys [key, key + count) of the context, which lie in one page.
void AttentionStep::add_keys(const WorkItem& item, int64_t key, int64_t count,
                             std::span<TileRow> rows) const {
  const KvPages& pages = params_.pages;
  const Tensor& tables = params_.batch.block_tables;
  const int64_t page_size = pages.page_size();
  const int64_t page = tables.as<int32_t>()[item.sequence * tables.dim(1) + key / page_size];
  const int64_t page_row = (page * num_kv_heads_ + item.kv_head) * page_size + key % page_size;
  for (TileRow& row : rows) {
    const int64_t begin = std::max(key, row.first_key);
    const int64_t end = std::min(key + count, row.key_end);
    if (begin >= end) continue;
    const int64_t first = (page_row + begin - key) * head_dim_;
    add_tile(row.query, pages.keys.as<float>() + first, pages.values.as<float>() + first,
             end - begin, head_dim_, params_.scale, params_.softcap, row.state, row.accumulated);
  }
}

// Adds up the parts of the rows of `last`, the item of their last part, in the order of the
// context.
void AttentionStep::merge_parts(const WorkItem& last) const {
  for (int64_t row = last.row_begin; row < last.row_end; ++row) {
    float* const total = partial(last, 0, row);
    RunningSoftmax state{total[head_dim_], total[head_dim_ + 1]};
    for (int64_t part = 1; part <= last.part; ++part) {
      const float* other = partial(last, part, row);
      merge({other[head_dim_], other[head_dim_ + 1]}, other, head_dim_, state, total);
    }
    normalize(total, head_dim_, state.sum, out_ + offset(last, row));
  }
}

}  // namespace

void attention(const Tensor& out, const AttentionParams& params, ThreadPool& pool) {
  AttentionStep(out, params).run(pool);
}

size_t attention_workspace_bytes(const BackendLimits& limits) {
  int64_t elements = checked_multiply(
      limits.max_sequences, max_query_parts(limits.max_context_length), "attention workspace");
  elements = checked_multiply(elements, limits.num_heads, "attention workspace");
  elements = checked_multiply(elements, limits.head_dim + 2, "attention workspace");
  return checked_multiply(static_cast<size_t>(elements), sizeof(float), "attention workspace");
}

}  // namespace tessera
