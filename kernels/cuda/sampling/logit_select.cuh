// Finding a threshold among the logits of one sequence by radix selection. The blocks of a cluster
// have a share of the logits each and add up what they count.
#pragma once

#include <cstdint>

#include "kernels/cuda/sampling/cluster.cuh"

namespace tessera {

inline constexpr int kSampleThreads = 1024;
inline constexpr int kSampleWarps = kSampleThreads / kWarpSize;

// A block's share of the logits of a sequence.
struct LogitShare {
  const float* logits;  // [count]
  int first_token;      // whose logit is logits[0]
  int count;

  // Where order matters, each warp takes a range of consecutive tokens.
  __device__ int warp_tokens() const { return (count + kSampleWarps - 1) / kSampleWarps; }
  __device__ int warp_begin() const { return warp_index() * warp_tokens(); }
  __device__ int warp_end() const { return min(warp_begin() + warp_tokens(), count); }
  // Calls visit(i, logits[i]) for this lane's logits of the warp's range.
  template <typename Visit>
  __device__ void for_each_of_warp(Visit visit) const {
    const int end = warp_end();
#pragma unroll 4
    for (int i = warp_begin() + lane_index(); i < end; i += kWarpSize) visit(i, logits[i]);
  }
};

// Calls visit(i, share.logits[i]) for this thread's logits, in order, kLoadsInFlight at a time.
template <int kLoadsInFlight, typename Visit>
__device__ void for_each_logit(const LogitShare& share, Visit visit) {
  const int count = share.count;
#pragma unroll 1
  for (int begin = threadIdx.x; begin < count; begin += kSampleThreads * kLoadsInFlight) {
    float values[kLoadsInFlight];
#pragma unroll
    for (int i = 0; i < kLoadsInFlight; ++i) {
      const int index = begin + i * kSampleThreads;
      values[i] = index < count ? share.logits[index] : 0.0f;
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

__device__ inline uint64_t warp_sum(uint64_t value) {
  return warp_reduce(value, [](uint64_t a, uint64_t b) { return a + b; });
}
template <int kCount>
__device__ uint64_t sum_of(const uint64_t (&values)[kCount]) {
  static_assert(kCount % kWarpSize == 0);
  uint64_t sum = 0;
#pragma unroll
  for (int i = 0; i < kCount; i += kWarpSize) sum += values[i + lane_index()];
  return warp_sum(sum);
}

// The first lane at which the running sum of `mass` over the warp exceeds `remaining`, from which
// what comes before that lane is taken; -1 if there is none, and then all is taken.
__device__ inline int find_lane(uint64_t mass, uint64_t& remaining) {
  uint64_t sum = mass;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const uint64_t lower = __shfl_up_sync(kFullWarp, sum, distance);
    if (lane_index() >= distance) sum += lower;
  }
  const uint32_t exceeds = __ballot_sync(kFullWarp, sum > remaining);
  const int lane = __ffs(static_cast<int>(exceeds)) - 1;
  remaining -= __shfl_sync(kFullWarp, lane < 0 ? sum : sum - mass, lane & (kWarpSize - 1));
  return lane;
}

// 64-bit sums in two 32-bit halves: shared memory adds 32 bits natively, 64 bits by retrying.
template <int kBlocks>
struct MassHistogram {
  using Cluster = SamplingCluster<kBlocks>;
  static constexpr int kBins = 2048;
  static constexpr int kGroups = kBins / kWarpSize;  // of 32 consecutive bins; divided over blocks
  static constexpr int kBlockGroups = kGroups / kBlocks;

  uint32_t low[kBins];  // of the block's share
  uint32_t high[kBins];
  uint64_t bins[kBlockGroups * kWarpSize];  // of all shares, in the block's groups
  uint64_t groups[kGroups];                 // sums of all

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

  // Adds up the histograms of all blocks and returns the mass in all bins.
  __device__ uint64_t combine() {
    Cluster::sync();
    for (int group = warp_index(); group < kBlockGroups; group += kSampleWarps) {
      const int bin = group * kWarpSize + lane_index();
      const int index = Cluster::rank() * kBlockGroups * kWarpSize + bin;
      uint64_t mass = 0;
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        mass += static_cast<uint64_t>(*Cluster::in_block(&high[index], block)) << 32 |
                *Cluster::in_block(&low[index], block);
      }
      bins[bin] = mass;
      Cluster::send(groups, group, warp_sum(mass));
    }
    Cluster::sync();
    return sum_of(groups);
  }

  // After combine(): the bin, counted from the top, in which the running sum exceeds `remaining`,
  // which is less than the sum of all and from which the bins above are taken. Every warp does the
  // same.
  __device__ int find_from_top(uint64_t& remaining) const {
    const int from_top = kWarpSize - 1 - lane_index();
    int group = kGroups;
    int lane = -1;
    while (lane < 0 && group > 0) {
      group -= kWarpSize;
      lane = find_lane(groups[group + from_top], remaining);
    }
    group += kWarpSize - 1 - lane;
    const uint64_t* const found =
        Cluster::in_block(&bins[group % kBlockGroups * kWarpSize], group / kBlockGroups);
    return group * kWarpSize + kWarpSize - 1 - find_lane(found[from_top], remaining);
  }
};

// The largest logit such that it and all above it have a mass of at least target(total), where
// mass(logit) is an integer, total is the mass of all and target(total) in [1, total]. Three
// passes settle 11, 11 and 10 bits. They run through the same instructions: fetching those takes
// longer than what they do.
template <int kBlocks, typename Mass, typename Target>
__device__ float select_logit(const LogitShare& share, MassHistogram<kBlocks>& histogram, Mass mass,
                              Target target) {
  constexpr int kBits = 11;
  uint32_t prefix = 0;
  uint64_t remaining = 0;
#pragma unroll 1
  for (int unknown = 32; unknown > 0; unknown -= kBits) {
    const bool is_first = unknown == 32;
    const int shift = max(unknown - kBits, 0);
    const int bits = unknown - shift;
    histogram.clear();
    for_each_logit<8>(share, [&](int, float logit) {
      const uint32_t key = ordered_key(logit);
      if (!is_first && key >> (shift + bits) != prefix) return;
      const uint64_t addend = mass(logit);
      if (addend > 0) histogram.add(static_cast<int>(key >> shift & ((1u << bits) - 1)), addend);
    });
    const uint64_t total = histogram.combine();
    if (is_first) remaining = target(total) - 1;
    prefix = prefix << bits | static_cast<uint32_t>(histogram.find_from_top(remaining));
  }
  return from_ordered_key(prefix);
}

}  // namespace tessera
