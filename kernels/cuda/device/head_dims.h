// Which head_dim attention's kernels take. Plain arithmetic, no CUDA.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/tensor/check.h"

namespace tessera {

// In rising order. Each value costs compile time in two attention kernels and two types.
inline constexpr std::array<int, 6> kHeadDims{32, 64, 80, 96, 128, 256};

// The smallest that is not below head_dim: heads in between are filled up with zeros. Keys and
// values in float8_e4m3 are in rows of a multiple of 32 bytes. Throws Error when head_dim is above
// all of them.
inline int64_t kernel_head_dim(int64_t head_dim, bool is_fp8) {
  const auto* const padded = std::ranges::find_if(kHeadDims, [&](int64_t supported) {
    return supported >= head_dim && (!is_fp8 || supported % 32 == 0);
  });
  CHECK(padded != kHeadDims.end(), "head_dim ", head_dim, " is not supported on CUDA, at most ",
        kHeadDims.back(), " is");
  return *padded;
}

}  // namespace tessera
