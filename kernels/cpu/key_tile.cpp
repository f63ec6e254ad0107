#include "kernels/cpu/key_tile.h"

#include <algorithm>

#include "kernels/cpu/element_types.h"
#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

// destination = source, widened, then zeros.
struct WidenRow {
  template <int kLanes, typename T>
  VECTOR_INLINE static void run(const T* source, int64_t count, int64_t padded_count,
                                float* destination) {
    typename VectorOf<kLanes>::Floats lanes;
    for (int64_t i = 0; i < padded_count; i += kLanes) {
      load_first(source + i, std::clamp<int64_t>(count - i, 0, kLanes), lanes);
      store(lanes, destination + i);
    }
  }
};

// rows[i] = row i of the tile in `pages`, a tensor of keys or of values.
template <typename T>
void gather_rows(const Tensor& pages, const KeySource& source, const KeyTile& tile, bool in_place,
                 float* storage, const float** rows) {
  const int64_t page_size = pages.dim(2);
  const int64_t head_dim = pages.dim(3);
  const int64_t row_width = padded_head_dim(head_dim);
  for (int64_t i = 0; i < tile.count; ++i) {
    const int64_t token = tile.first + i;
    const int64_t page = source.block_table[token / page_size];
    const int64_t row = (page * pages.dim(1) + source.kv_head) * page_size + token % page_size;
    const T* stored = pages.as<T>() + row * head_dim;
    if constexpr (std::is_same_v<T, float>) {
      if (in_place) {
        rows[i] = stored;
        continue;
      }
    }
    rows[i] = storage + i * row_width;
    run_vectorized<WidenRow>(stored, head_dim, row_width, storage + i * row_width);
  }
  std::fill(rows + tile.count, rows + kTileKeys, rows[tile.count - 1]);
}

}  // namespace

void gather_tile(const KeySource& source, float* storage, KeyTile& tile) {
  const Tensor& keys = source.pages.keys;
  const int64_t head_dim = source.pages.head_dim();
  const int64_t row_width = padded_head_dim(head_dim);
  with_float_type(keys.dtype, [&]<typename T>() {
    gather_rows<T>(keys, source, tile, /*in_place=*/true, storage, tile.keys);
    gather_rows<T>(source.pages.values, source, tile, /*in_place=*/row_width == head_dim,
                   storage + kTileKeys * row_width, tile.values);
  });
}

}  // namespace tessera
