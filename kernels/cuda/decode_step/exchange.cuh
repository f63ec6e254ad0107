// How the blocks of the fused decode kernel hand each other the few thousand numbers between two
// products, without barriers or fences.
//
// A word that has not been written yet holds kMissing, and readers ask again until it does not
// (the scheme of Lamport's queues). Every word is complete in itself, so nothing need be ordered:
// a product starts one store and one load after the last sum of the one before it. A barrier over
// the grid costs four trips through the memory system instead of these two
// (docs/experiments/decode-step.md).
//
// kMissing is a NaN that no arithmetic yields: results that are NaN are 0x7fffffff in float32,
// 0x7fff in 16 bits.
//
// Words must be missing again before they are written anew, so a copy of all words serves every
// other layer and is cleared in between. There are two sets of two copies; a launch uses one set,
// the next launch the other.
//   - Layer l uses copy l % 2 of the set, and clears the other copy, which layer l - 1 has used.
//   - It may do so once all blocks have left layer l - 1. A block knows that when it has read the
//     whole residual stream that goes into layer l: every block adds a word to it at the end of
//     layer l - 1.
//   - Layer l + 1 must not find old words. A fence orders a block's clearing before the words that
//     it adds to the residual stream after the attention of layer l. All blocks read those words
//     before they ask for anything of layer l + 1.
// The set that the launch before has used is cleared on the way, and so are that launch's counters
// of claimed items, which start at kMissing too.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <cstdio>

#include "kernels/cuda/decode_step/plan.h"
#include "kernels/cuda/primitives/block_reduce.cuh"

namespace tessera {

inline constexpr uint32_t kMissing = 0xffffffffu;

// A load that the compiler neither moves nor drops, and that the L1 cache never serves: it would
// not see other blocks' stores.
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
__device__ inline bool is_missing(const uint32_t (&words)[4]) {
  return is_missing(make_uint4(words[0], words[1], words[2], words[3]));
}
__device__ inline uint2 missing_pair() { return make_uint2(kMissing, kMissing); }
__device__ inline uint4 missing_words() {
  return make_uint4(kMissing, kMissing, kMissing, kMissing);
}

// Loads the word if `value` is missing. There is no branch, so that several of these loads are all
// on their way before the thread looks at the first.
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
__device__ inline void load_if_missing(uint32_t (&values)[4], const uint32_t* words) {
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0; "
      "@p ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
      : "+r"(values[0]), "+r"(values[1]), "+r"(values[2]), "+r"(values[3])
      : "l"(words), "r"(static_cast<uint32_t>(is_missing(values)))
      : "memory");
}

// Calls `load_missing` until it returns that nothing is missing; it loads words by
// load_if_missing(). Words that are there are not loaded again: when all blocks wait for the last
// one, such loads would keep the L2 cache from serving anything else.
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

// Inputs of products are pairs of features, and eight neighbouring features are four pairs. At
// which place of the four the exchange has a pair; also, which pair it has at a place. In a step of
// several tokens two pairs that one tensor-core operand takes lie side by side (multiply_unit()),
// so that what one load brings into four registers need not be moved.
template <int kTokens>
__device__ constexpr int pair_place(int pair) {
  return kTokens == 1 || pair == 0 || pair == 3 ? pair : 3 - pair;
}

// Publishes the pairs of features 4 i to 4 i + 3 of a token, whose inputs begin at `words`.
template <int kTokens>
__device__ void publish_features(uint32_t* words, int i, uint2 pairs) {
  if constexpr (kTokens == 1) {
    publish(words + i * 2, pairs);
  } else {
    uint32_t* const group = words + i / 2 * 4 + i % 2;
    publish(group, pairs.x);
    publish(group + 2, pairs.y);
  }
}

// Which replica of the words that all blocks read this block reads.
template <int kTokens>
__device__ int own_replica() {
  return static_cast<int>(blockIdx.x) % exchange_replicas(kTokens);
}

// Marks `count` words, a multiple of 4, as missing. Each of num_threads threads calls it with its
// own number `thread` and marks a part of them.
__device__ inline void clear_words(uint32_t* words, int count, int thread, int num_threads) {
  for (int i = thread * 4; i < count; i += num_threads * 4) {
    publish(words + i, missing_words());
  }
}

}  // namespace tessera
