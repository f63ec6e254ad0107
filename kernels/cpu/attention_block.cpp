#include "kernels/cpu/attention_block.h"

#include <algorithm>
#include <limits>
#include <numbers>

namespace tessera {
namespace {

// Takes arrays one after the other from a thread's memory.
class Carver {
 public:
  explicit Carver(float* memory) : next_(memory) {}
  template <typename T = float>
  T* take(int64_t count) {
    static_assert(sizeof(T) == sizeof(float));
    float* const taken = next_;
    next_ += count;
    return reinterpret_cast<T*>(taken);
  }

 private:
  float* next_;
};

AttentionBlock allocate_block(int64_t head_dim, ThreadScratch& scratch, int thread) {
  const int64_t row_width = padded_head_dim(head_dim);
  const int64_t count =
      kBlockRows * (row_width + kTileKeys + row_width + 5) + 2 * kTileKeys * row_width;
  Carver carver(scratch.get<float>(thread, count));
  AttentionBlock block{};
  block.head_dim = head_dim;
  block.row_width = row_width;
  block.queries = carver.take(row_width * kBlockRows);
  block.scores = carver.take(kTileKeys * kBlockRows);
  block.accumulated = carver.take(kBlockRows * row_width);
  block.largest = carver.take(kBlockRows);
  block.sums = carver.take(kBlockRows);
  block.factors = carver.take(kBlockRows);
  block.first_keys = carver.take<int32_t>(kBlockRows);
  block.key_ends = carver.take<int32_t>(kBlockRows);
  block.tile_storage = carver.take(2 * kTileKeys * row_width);
  return block;
}

void set_row(const AttentionBlock& block, int64_t row, const QueryRow& source, float scale) {
  const int64_t row_stride = block.has_few_rows() ? block.row_width : 1;
  const int64_t element_stride = block.has_few_rows() ? 1 : kBlockRows;
  float* const query = block.queries + row * row_stride;
  for (int64_t d = 0; d < block.head_dim; ++d) query[d * element_stride] = source.query[d] * scale;
  block.first_keys[row] = static_cast<int32_t>(source.first_key);
  block.key_ends[row] = static_cast<int32_t>(source.key_end);
}

}  // namespace

AttentionBlock start_block(std::span<const QueryRow> rows, int64_t head_dim, const ScoreRule& rule,
                           RowLayout layout, ThreadScratch& scratch, int thread) {
  constexpr auto kLog2E = std::numbers::log2e_v<float>;
  AttentionBlock block = allocate_block(head_dim, scratch, thread);
  block.num_rows = std::ssize(rows);
  block.layout = layout;
  block.score_softcap = rule.softcap * kLog2E;
  // With a softcap, what cap_scores takes: twice the argument of tanh.
  const float unit = rule.softcap > 0.0f ? 2.0f / rule.softcap : 1.0f;
  if (block.num_rows < kBlockRows) {
    // Lanes without a row.
    std::fill_n(block.queries,
                block.has_few_rows() ? kFewRows * block.row_width : head_dim * kBlockRows, 0.0f);
  }
  std::fill_n(block.first_keys, kBlockRows, 0);
  std::fill_n(block.key_ends, kBlockRows, 0);
  for (int64_t row = 0; row < block.num_rows; ++row) {
    set_row(block, row, rows[static_cast<size_t>(row)], rule.scale * unit * kLog2E);
  }
  std::fill_n(block.accumulated, std::max(kFewRows, block.num_rows) * block.row_width, 0.0f);
  std::fill_n(block.largest, kBlockRows, std::numeric_limits<float>::lowest());
  std::fill_n(block.sums, kBlockRows, 0.0f);
  return block;
}

}  // namespace tessera
