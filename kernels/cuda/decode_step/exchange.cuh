// How the blocks of the fused decode kernel hand each other the few thousand numbers between two
// products, without barriers or fences.
//
// A word that has not been written yet holds kMissing, and readers ask again until it does not
// (the scheme of Lamport's queues). Every word is complete in itself, so nothing need be ordered:
// a product starts one store and one load after the last sum of the one before it. A barrier over
// the grid costs four trips through the memory system instead of these two: 2.7 us a product when
// it is busy, instead of 1.3 (H200, products of the 8B shape: 4,154 against 4,381 GB/s).
//
// kMissing is a NaN that no arithmetic yields: results that are NaN are 0x7fffffff in float32,
// 0x7fff in 16 bits.
//
// Words must be missing again before they are written anew. There are two sets of two copies.
// Layer l uses copy l % 2 of the launch's set, and clears the other copy, once all blocks are known
// to have left layer l - 1: when a block has read the whole residual stream that goes into layer l,
// to which every block has added a word at the end of layer l - 1. Clearing is ordered, by a fence,
// before the block's words of the residual stream after attention, which everyone reads before
// asking for anything of layer l + 1. The other set, which the launch before has used, is cleared
// on the way, and so are that launch's counters of claimed items, which start at kMissing too.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <cstdio>

#include "kernels/cuda/decode_step/plan.h"
#include "kernels/cuda/primitives/block_reduce.cuh"

namespace tessera {

inline constexpr uint32_t kMissing = 0xffffffffu;

// Not reordered away, and never served by the L1 cache, which would not see the change.
__device__ inline uint32_t load_word(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

__device__ inline bool is_missing(uint32_t word) { return word == kMissing; }
__device__ inline bool is_missing(uint2 words) {
  return is_missing(words.x) || is_missing(words.y);
}
__device__ inline bool is_missing(uint4 words) {
  return is_missing(words.x) || is_missing(words.y) || is_missing(words.z) || is_missing(words.w);
}
__device__ inline uint2 missing_pair() { return make_uint2(kMissing, kMissing); }
__device__ inline uint4 missing_words() {
  return make_uint4(kMissing, kMissing, kMissing, kMissing);
}

// Loads what is missing. Without a branch, so that the loads that a thread asks for one after the
// other are all on their way before it looks at the first.
__device__ inline void load_if_missing(uint32_t& value, const uint32_t* word) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.gpu.global.u32 %0, [%1]; }"
               : "+r"(value)
               : "l"(word), "r"(static_cast<uint32_t>(is_missing(value)))
               : "memory");
}
__device__ inline void load_if_missing(uint2& values, const uint32_t* words) {
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %3, 0; @p ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2]; }"
      : "+r"(values.x), "+r"(values.y)
      : "l"(words), "r"(static_cast<uint32_t>(is_missing(values)))
      : "memory");
}
__device__ inline void load_if_missing(uint4& values, const uint32_t* words) {
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0; "
      "@p ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
      : "+r"(values.x), "+r"(values.y), "+r"(values.z), "+r"(values.w)
      : "l"(words), "r"(static_cast<uint32_t>(is_missing(values)))
      : "memory");
}

// Calls `load_missing`, which calls the above and returns whether something still is missing, until
// nothing is. Words that are there are not loaded again: when all blocks wait for the last one,
// they would keep the L2 cache from serving anything else.
template <typename LoadMissing>
__device__ void poll(LoadMissing load_missing) {
#ifdef TESSERA_WATCHDOG_TRIES
  for (int64_t tries = 0; load_missing(); ++tries) {
    if (tries < TESSERA_WATCHDOG_TRIES) continue;
    std::printf("hang: block %d thread %d waits for another block's words\n",
                static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x));
    __trap();
  }
#else
  while (load_missing()) {
  }
#endif
}

__device__ inline void publish(uint32_t* word, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
__device__ inline void publish(uint32_t* word, float value) {
  publish(word, __float_as_uint(value));
}
__device__ inline void publish(uint32_t* words, uint2 values) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(words), "r"(values.x),
               "r"(values.y)
               : "memory");
}
__device__ inline void publish(uint32_t* words, uint4 values) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(words), "r"(values.x),
               "r"(values.y), "r"(values.z), "r"(values.w)
               : "memory");
}

// The replica that the block reads, of those that all blocks have left.
template <int kTokens>
__device__ int own_replica() {
  return static_cast<int>(blockIdx.x) % exchange_replicas(kTokens);
}

// Threads `thread` of `num_threads` mark words as missing; `count` is a multiple of 4.
__device__ inline void clear_words(uint32_t* words, int count, int thread, int num_threads) {
  for (int i = thread * 4; i < count; i += num_threads * 4) {
    publish(words + i, missing_words());
  }
}

}  // namespace tessera
