#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/attention_few_rows.h"
#include "kernels/cpu/attention_products.h"
#include "kernels/cpu/attention_softmax.h"

namespace tessera {
namespace {

// Rows are in the order of their tokens, so the first and the last see the least of a tile.
bool sees_all(const AttentionBlock& block, const KeyTile& tile) {
  return block.key_ends[0] >= tile.first + tile.count &&
         block.first_keys[block.num_rows - 1] <= tile.first;
}

struct AddTile {
  template <int kLanes>
  VECTOR_INLINE static void run(const AttentionBlock& block, const KeyTile& tile) {
    if (block.has_few_rows()) return add_few<kLanes>(block, tile);
    // What a product holds in registers: AVX-512 has 32 of them, the others have 16.
    if constexpr (kLanes == 16) {
      multiply_queries<kLanes, 8, 3>(block, tile);
    } else {
      multiply_queries<kLanes, 6, 2>(block, tile);
    }
    const bool is_masked = !sees_all(block, tile);
    for (int64_t row = 0; row < block.num_rows; row += kLanes) {
      exponentiate<kLanes>(block, tile, row, is_masked);
    }
    accumulate_values<kLanes, 6, kLanes == 16 ? 4 : 2>(block, tile);
  }

 private:
  // One vector of rows.
  template <int kLanes>
  VECTOR_INLINE static void exponentiate(const AttentionBlock& block, const KeyTile& tile,
                                         int64_t row, bool is_masked) {
    const ScoreColumn column{block.scores + row, kBlockRows, tile.count};
    if (block.score_softcap > 0.0f) cap_scores<kLanes>(column, block.score_softcap);
    if (is_masked) {
      mask_scores<kLanes>(column, block.first_keys + row, block.key_ends + row, tile.first, 1);
    }
    typename VectorOf<kLanes>::Floats largest_before, largest, sums;
    load(block.largest + row, largest_before);
    largest = largest_before;
    find_largest(column, largest);
    store(largest, block.largest + row);
    largest_before -= largest;
    exp2_of_nonpositive(largest_before);
    store(largest_before, block.factors + row);
    load(block.sums + row, sums);
    sums *= largest_before;
    exponentiate_scores(column, largest, sums);
    store(sums, block.sums + row);
  }

  template <int kLanes>
  VECTOR_INLINE static void add_few(const AttentionBlock& block, const KeyTile& tile) {
    if (block.num_rows == 1) return FewRows<kLanes, 1>::add_tile(block, tile, 0);
    if (block.num_rows == 2) return FewRows<kLanes, 2>::add_tile(block, tile, 0);
    for (int64_t row = 0; row < block.num_rows; row += 4) {
      FewRows<kLanes, 4>::add_tile(block, tile, row);
    }
  }
};

}  // namespace

void add_tile(const AttentionBlock& block, const KeyTile& tile) {
  run_vectorized<AddTile>(block, tile);
}

}  // namespace tessera
