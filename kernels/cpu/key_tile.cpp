#include "kernels/cpu/key_tile.h"

#include <algorithm>

#include "kernels/cpu/element_types.h"
#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

// destination [num_rows, padded_head_dim] = scale * source [num_rows, head_dim], widened, then
// zeros. Only float8_e4m3 has a scale.
struct WidenRows {
  template <int kLanes, typename T>
  VECTOR_INLINE static void run(const T* source, int64_t num_rows, int64_t head_dim, float scale,
                                float* destination) {
    const int64_t row_width = padded_head_dim(head_dim);
    typename VectorOf<kLanes>::Floats lanes;
    for (; num_rows > 0; --num_rows, source += head_dim, destination += row_width) {
      for (int64_t d = 0; d < row_width; d += kLanes) {
        load_first(source + d, std::clamp<int64_t>(head_dim - d, 0, kLanes), lanes);
        if constexpr (std::is_same_v<T, Float8E4M3>) lanes *= scale;
        store(lanes, destination + d);
      }
    }
  }
};

// Where in `pages` the row of a token lies.
template <typename T>
const T* stored_row(const Tensor& pages, const KeySource& source, int64_t token) {
  const int64_t page_size = pages.dim(2);
  const int64_t page = source.block_table[token / page_size];
  const int64_t row = (page * pages.dim(1) + source.kv_head) * page_size + token % page_size;
  return pages.as<T>() + row * pages.dim(3);
}

// rows[i] = row i of the tile, in `pages`, a tensor of keys or of values with their scales, or
// copied to `storage`.
template <typename T>
void gather_rows(const Tensor& pages, const Tensor& scales, const KeySource& source,
                 const KeyTile& tile, float* storage, const float** rows) {
  const float scale = scales.empty() ? 1.0f : scales.as<float>()[source.kv_head];
  const int64_t page_size = pages.dim(2);
  const int64_t head_dim = pages.dim(3);
  const int64_t row_width = padded_head_dim(head_dim);
  for (int64_t begin = 0, end = 0; begin < tile.count; begin = end) {
    const int64_t token = tile.first + begin;
    end = std::min(tile.count, begin + page_size - token % page_size);
    const T* stored = stored_row<T>(pages, source, token);
    if (std::is_same_v<T, float> && head_dim == row_width) {
      const auto* in_place = reinterpret_cast<const float*>(stored);
      for (int64_t i = begin; i < end; ++i) rows[i] = in_place + (i - begin) * head_dim;
    } else {
      run_vectorized<WidenRows>(stored, end - begin, head_dim, scale, storage + begin * row_width);
      for (int64_t i = begin; i < end; ++i) rows[i] = storage + i * row_width;
    }
  }
  std::fill(rows + tile.count, rows + kTileKeys, rows[tile.count - 1]);
}

}  // namespace

void gather_tile(const KeySource& source, float* storage, KeyTile& tile) {
  const KvPages& pages = source.pages;
  const int64_t row_width = padded_head_dim(pages.head_dim());
  const auto gather = [&]<typename T>() {
    gather_rows<T>(pages.keys, pages.key_scales, source, tile, storage, tile.keys);
    gather_rows<T>(pages.values, pages.value_scales, source, tile, storage + kTileKeys * row_width,
                   tile.values);
  };
  if (pages.is_fp8()) return gather.template operator()<Float8E4M3>();
  with_float_type(pages.keys.dtype, gather);
}

}  // namespace tessera
