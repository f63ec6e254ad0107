// Queries of the FP8 prefill kernel: copied as they are, rounded to e4m3 by those that multiply
// them.
#pragma once

#include "kernels/cuda/attention/prefill/tiles.cuh"
#include "kernels/cuda/attention/prefill_fp8/warpgroup_attention.cuh"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/element.cuh"

namespace tessera {

// The 64 query rows of a warpgroup in e4m3, swizzled as tensor cores read them.
struct Fp8QueryRows {
  alignas(1024) uint8_t rows[kWarpgroupRows * kFp8HeadDim];
  float factors[kWarpgroupRows];  // turn a row's products into fractions of kLargestCode
};

// All threads of a warpgroup wait for each other. Each warpgroup has a barrier of its own.
__device__ inline void synchronize_warpgroup(int warpgroup) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + warpgroup), "n"(kWarpgroupSize) : "memory");
}

// Four elements, each times `power`, as e4m3.
template <typename Element>
__device__ __forceinline__ uint32_t round_four(const Element* elements, float power) {
  return pack_e4m3(as_float(elements[0]) * power, as_float(elements[1]) * power,
                   as_float(elements[2]) * power, as_float(elements[3]) * power);
}

// One warpgroup rounds its rows, each times the power of two that brings the largest element to
// 224 ... 448. `panels`: the warpgroup's rows in two panels of 64 columns that lie panel_stride
// elements apart; a thread has a row of one panel. head_factor: what products of queries and stored
// keys are multiplied with to become exponents of 2.
template <typename Element>
__device__ __forceinline__ void round_queries(Fp8QueryRows& rounded, const Element* panels,
                                              int panel_stride, float head_factor, int warpgroup) {
  constexpr int kChunks = kPanelColumns / 8;  // of 16 bytes, in a row of a panel
  const int thread = reread_thread_index() % kWarpgroupSize;
  const int row = thread / 2;
  const int panel = thread % 2;
  const auto* const chunks =
      reinterpret_cast<const Vector<Element, 8>*>(panels + panel * panel_stride) + row * kChunks;
  // Threads of the second panel begin with the second half: what eight threads read lies in eight
  // different groups of four banks.
  const auto chunk_of = [&](int i) { return i ^ (panel * (kChunks / 2)); };
  Vector<Element, 8> elements[kChunks];
  uint32_t maxima = 0;  // of lower and upper halves of pairs
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    elements[i] = chunks[chunk_of(i) ^ (row % 8)];
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      // Without their signs, 16-bit floats are ordered as their bits are.
      const uint32_t bits = reinterpret_cast<const uint32_t*>(&elements[i])[pair];
      maxima = __vmaxu2(maxima, bits & 0x7fff7fffu);
    }
  }
  maxima = __vmaxu2(maxima, __shfl_xor_sync(kFullWarp, maxima, 1));
  const auto largest = static_cast<uint16_t>(max(maxima & 0xffffu, maxima >> 16));
  // 448 is 1.75 * 2^8: the exponent of largest / 448, rounded down, is that of `largest` less 8, or
  // less 9 where the mantissa is below 1.75.
  const int bits = __float_as_int(as_float(reinterpret_cast<const Element&>(largest)));
  const int exponent = min(max(((bits - 0x600000) >> 23) - 7, 1), 253);
  const float power = __int_as_float((254 - exponent) << 23);
  synchronize_warpgroup(warpgroup);  // the last tile's rows have been read
  auto* const row_chunks = reinterpret_cast<uint4*>(rounded.rows) + row * 8;
#pragma unroll
  for (int i = 0; i < kChunks; i += 2) {
    const int chunk = panel * (kChunks / 2) + chunk_of(i) / 2;
    row_chunks[chunk ^ (row % 8)] = make_uint4(
        round_four(elements[i].values, power), round_four(elements[i].values + 4, power),
        round_four(elements[i + 1].values, power), round_four(elements[i + 1].values + 4, power));
  }
  if (panel == 0) {
    // Above 0, so that a hidden key's score stays -inf.
    rounded.factors[row] = fmaxf(head_factor * __int_as_float(exponent << 23), 1.2e-38f) *
                           (kCodesPerOctave / kLargestCode);
  }
  fence_async_proxy();  // tensor cores read the rows
  synchronize_warpgroup(warpgroup);
}

}  // namespace tessera
