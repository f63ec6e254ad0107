// From sums as the tensor core leaves them to 16 bytes of a row at a time.
#pragma once

#include <cstdint>

#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/element.cuh"

namespace tessera {

// Transposes the 4 x 4 words that the four lanes 4 n ... 4 n + 3 hold, a row each.
__device__ inline void transpose_in_quad(uint32_t (&words)[4]) {
  const int lane = lane_index();
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool is_upper = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      uint32_t& low = words[i];
      uint32_t& high = words[i + distance];
      const uint32_t received = __shfl_xor_sync(kFullWarp, is_upper ? low : high, distance);
      (is_upper ? low : high) = received;
    }
  }
}

// Rounds kCount vectors of results, at most four. A lane's vector has two neighbouring features of
// a first token (x, y) and of a second token (z, w). Afterwards, among each four lanes, lane n has
// all of vector n: eight neighbouring features of the first token and of the second.
template <typename Element, int kCount>
__device__ void round_to_quads(const float4* values, uint32_t (&first)[4], uint32_t (&second)[4]) {
  const auto packed = [](float a, float b) {
    const Vector<Element, 2> pair{from_float<Element>(a), from_float<Element>(b)};
    return __builtin_bit_cast(uint32_t, pair);
  };
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    first[i] = packed(values[i].x, values[i].y);
    second[i] = packed(values[i].z, values[i].w);
  }
  transpose_in_quad(first);
  transpose_in_quad(second);
}

}  // namespace tessera
