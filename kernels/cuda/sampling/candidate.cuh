// What tokens are ordered by when the most probable ones are looked for.
#pragma once

#include <cstdint>

#include "kernels/cuda/sampling/logit_select.cuh"

namespace tessera {

// A logit and its token, as one number: the larger logit is larger, then the lower id.
__device__ inline uint64_t candidate(float logit, int token) {
  return static_cast<uint64_t>(ordered_key(logit)) << 32 | ~static_cast<uint32_t>(token);
}
__device__ inline int token_of(uint64_t candidate) {
  return static_cast<int>(~static_cast<uint32_t>(candidate));
}
__device__ inline uint32_t key_of(uint64_t candidate) {
  return static_cast<uint32_t>(candidate >> 32);
}

}  // namespace tessera
