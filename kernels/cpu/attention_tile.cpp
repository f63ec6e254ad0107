#include "kernels/cpu/attention_block.h"
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
    // Vectors as wide as there are rows: few rows are of a decode, where memory is the limit.
    if constexpr (kLanes > 4) {
      if (block.num_rows <= 4) return run_rows<kLanes, 4>(block, tile);
    }
    if constexpr (kLanes > 8) {
      if (block.num_rows <= 8) return run_rows<kLanes, 8>(block, tile);
    }
    run_rows<kLanes, kLanes>(block, tile);
  }

 private:
  // What a product holds in registers: AVX-512 has 32 of them, the others have 16.
  template <int kLanes, int kRowLanes>
  VECTOR_INLINE static void run_rows(const AttentionBlock& block, const KeyTile& tile) {
    if constexpr (kLanes == 16) {
      multiply_queries<kRowLanes, 8, 3>(block, tile);
    } else {
      multiply_queries<kRowLanes, 6, 2>(block, tile);
    }
    const bool is_masked = !sees_all(block, tile);
    for (int64_t row = 0; row < block.num_rows; row += kRowLanes) {
      if (block.score_softcap > 0.0f) cap_scores<kRowLanes>(block, tile.count, row);
      if (is_masked) mask_scores<kRowLanes>(block, tile, row);
      exponentiate_scores<kRowLanes>(block, tile.count, row);
    }
    accumulate_values<kLanes, 6, kLanes == 16 ? 4 : 2>(block, tile);
  }
};

}  // namespace

void add_tile(const AttentionBlock& block, const KeyTile& tile) {
  run_vectorized<AddTile>(block, tile);
}

}  // namespace tessera
