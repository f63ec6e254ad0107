// Rows of head_dim 16-bit elements in shared memory, free of bank conflicts.
#pragma once

#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/block_reduce.cuh"

namespace tessera {

// The 16-byte chunks of a row are permuted by XOR with the row number, so that the same chunk of
// eight consecutive rows, which is what ldmatrix reads, lies in eight different groups of four
// banks. A row of kChunks chunks starts at bank group row * kChunks % 8: rows that are
// 8 / kPeriod apart start at the same one, and these are told apart by the XOR.
template <typename Element, int kHeadDim>
struct SwizzledRows {
  static constexpr int kChunkElements = 8;
  static constexpr int kChunks = kHeadDim / kChunkElements;
  // The largest power of two, up to 8, that divides kChunks.
  static constexpr int kPeriod = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : 2;
  static_assert(kHeadDim % 16 == 0);

  Element* data;

  __device__ Element* chunk(int row, int chunk) const {
    const int swizzled = chunk ^ (row / (8 / kPeriod) % kPeriod);
    return data + (row * kChunks + swizzled) * kChunkElements;
  }

  // One warp starts copying rows [row, row + kRows) from rows that are `stride` elements apart.
  // All but the first num_valid become zero and are not read.
  template <int kRows>
  __device__ void copy_rows_async(int row, const Element* source, int64_t stride,
                                  int num_valid) const {
    static_assert(kRows * kChunks % kWarpSize == 0);
    const int lane = reread_lane_index();
#pragma unroll
    for (int step = 0; step < kRows * kChunks / kWarpSize; ++step) {
      const int index = step * kWarpSize + lane;
      const int offset = index / kChunks;
      // `index` counts chunks of adjacent rows; rows that lie apart add the gaps between them.
      copy_async_16(chunk(row + offset, index % kChunks),
                    source + offset * (stride - kHeadDim) + index * kChunkElements,
                    offset < num_valid);
    }
  }
};

}  // namespace tessera
