// Rows of head_dim 16-bit elements in shared memory, free of bank conflicts.
#pragma once

#include "kernels/cuda/primitives/async_copy.cuh"
#include "kernels/cuda/primitives/block_reduce.cuh"

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

  __device__ static uint32_t swizzle(uint32_t row) { return row / (8 / kPeriod) % kPeriod; }

  __device__ Element* chunk(uint32_t row, uint32_t chunk) const {
    return data + (row * kChunks + (chunk ^ swizzle(row))) * kChunkElements;
  }

  // What one lane reads by ldmatrix. Rows a multiple of 8 apart share their XOR: the address of a
  // chunk costs one instruction for all of them, and the distance is a constant in the load.
  struct LaneRows {
    const Element* first;
    uint32_t swizzle;

    // In the row `distance` rows below the first, a multiple of 8. `even_chunk` is even; the lane
    // reads it or the one after it.
    __device__ const Element* chunk(int distance, uint32_t even_chunk) const {
      return first + (even_chunk ^ swizzle) * kChunkElements + distance * kHeadDim;
    }
  };
  // The lane begins at `row` and reads chunks whose number is even plus `odd`, 0 or 1.
  __device__ LaneRows lane_rows(uint32_t row, uint32_t odd) const {
    return {data + row * kHeadDim, swizzle(row) ^ odd};
  }

  // One warp starts copying rows [row, row + kRows) from rows that are `stride` elements apart.
  // All but the first num_valid become zero and are not read.
  template <int kRows>
  __device__ void copy_rows_async(int row, const Element* source, int64_t stride,
                                  int num_valid) const {
    static_assert(kRows * kChunks % kWarpSize == 0);
    const uint32_t lane = reread_lane_index();
#pragma unroll
    for (int step = 0; step < kRows * kChunks / kWarpSize; ++step) {
      const uint32_t index = step * kWarpSize + lane;
      const uint32_t offset = index / kChunks;
      // `index` counts chunks of adjacent rows; rows that lie apart add the gaps between them.
      copy_async_16(chunk(row + offset, index % kChunks),
                    source + lane * kChunkElements + offset * (stride - kHeadDim) +
                        step * kWarpSize * kChunkElements,
                    static_cast<int>(offset) < num_valid);
    }
  }
};

}  // namespace tessera
