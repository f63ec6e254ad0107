// Finding a threshold among the logits of one sequence by radix selection, one block per sequence.
#pragma once

#include <cstdint>

#include "kernels/cuda/block_reduce.cuh"

namespace tessera {

inline constexpr int kSampleThreads = 1024;

// Calls visit(index, logit) for this thread's logits, in order of index. Several loads are in
// flight at a time.
template <typename Visit>
__device__ void for_each_logit(const float* logits, int count, Visit visit) {
  constexpr int kLoadsInFlight = 8;
  for (int begin = threadIdx.x; begin < count; begin += kSampleThreads * kLoadsInFlight) {
    float values[kLoadsInFlight];
#pragma unroll
    for (int i = 0; i < kLoadsInFlight; ++i) {
      const int index = begin + i * kSampleThreads;
      values[i] = index < count ? logits[index] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kLoadsInFlight; ++i) {
      const int index = begin + i * kSampleThreads;
      if (index < count) visit(index, values[i]);
    }
  }
}

// An unsigned number in the order of the floats; -0 and 0 are equal.
__device__ inline uint32_t ordered_key(float value) {
  const uint32_t bits = __float_as_uint(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float from_ordered_key(uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

// 64-bit sums in two 32-bit halves: shared memory adds 32 bits natively, 64 bits by retrying.
struct MassHistogram {
  static constexpr int kBins = 2048;
  static_assert(kBins == 2 * kSampleThreads, "a thread scans two bins");

  uint32_t low[kBins];
  uint32_t high[kBins];
  uint64_t remaining;  // results of find_from_top()
  int bin;

  __device__ void clear() {
    for (int i = threadIdx.x; i < kBins; i += kSampleThreads) {
      low[i] = 0;
      high[i] = 0;
    }
    __syncthreads();
  }

  __device__ void add(int index, uint64_t mass) {
    const auto addend = static_cast<uint32_t>(mass);
    const uint32_t before = atomicAdd(&low[index], addend);
    const uint32_t carry = before + addend < before ? 1 : 0;
    const uint32_t high_addend = static_cast<uint32_t>(mass >> 32) + carry;
    if (high_addend != 0) atomicAdd(&high[index], high_addend);
  }

  __device__ uint64_t mass(int index) const {
    return static_cast<uint64_t>(high[index]) << 32 | low[index];
  }

  // Sets `bin` to the one, counted from the top, in which the running sum reaches target(total),
  // which is in [1, total], and `remaining` to what is still missing above that bin.
  template <typename Target>
  __device__ void find_from_top(Target target) {
    __syncthreads();
    const int upper = kBins - 1 - 2 * static_cast<int>(threadIdx.x);
    const uint64_t upper_mass = mass(upper);
    const uint64_t lower_mass = mass(upper - 1);
    const BlockScan scan = block_scan(upper_mass + lower_mass);
    const uint64_t wanted = target(scan.total);
    if (scan.before < wanted && wanted <= scan.before + upper_mass + lower_mass) {
      const bool in_upper = wanted <= scan.before + upper_mass;
      bin = in_upper ? upper : upper - 1;
      remaining = wanted - scan.before - (in_upper ? 0 : upper_mass);
    }
    __syncthreads();
  }
};

// The largest logit such that it and all above it have a mass of at least target(total), where
// mass(logit) is an integer and total is the mass of all. Three passes settle 11, 11 and 10 bits.
template <typename Mass, typename Target>
__device__ float select_logit(const float* logits, int count, MassHistogram& histogram, Mass mass,
                              Target target) {
  constexpr int kShifts[] = {21, 10, 0};
  constexpr int kBits[] = {11, 11, 10};
  uint32_t prefix = 0;
#pragma unroll
  for (int pass = 0; pass < 3; ++pass) {
    const int shift = kShifts[pass];
    const uint32_t bin_mask = (1u << kBits[pass]) - 1;
    const uint64_t wanted = histogram.remaining;
    histogram.clear();
    for_each_logit(logits, count, [&](int, float logit) {
      const uint32_t key = ordered_key(logit);
      if (pass > 0 && key >> (shift + kBits[pass]) != prefix) return;
      const uint64_t addend = mass(logit);
      if (addend > 0) histogram.add(static_cast<int>(key >> shift & bin_mask), addend);
    });
    histogram.find_from_top([&](uint64_t total) { return pass == 0 ? target(total) : wanted; });
    prefix = prefix << kBits[pass] | static_cast<uint32_t>(histogram.bin);
  }
  return from_ordered_key(prefix);
}

}  // namespace tessera
