// The input features of a product of the fused decode kernel: from the words that the blocks have
// left for each other (decode_step/exchange.cuh) to the registers of a warp.
//
// All inputs are pairs of bfloat16, [num_tokens][features / 2] words in the order of pair_place();
// where the residual stream has two parts, [num_tokens][2][features / 2]. A warp brings only its
// own chunks, each when it comes to it, so that it can begin with what is there while other blocks
// still compute the rest.
#pragma once

#include "kernels/cuda/decode_step/block.cuh"
#include "kernels/cuda/decode_step/exchange.cuh"
#include "kernels/cuda/primitives/mma.cuh"

namespace tessera {

inline constexpr int kUnitSteps = kUnitFeatures / 32;  // of 32 features: 8 for each of 4 lanes

// The features of a chunk that a lane multiplies. In step s these are among the eight features from
// 32 s + 8 (lane % 4) on. With several tokens the lane has all eight, of token lane / 4, in the
// order of pair_place(). With a single token, lanes 0 to 3 have features 0, 1, 4 and 5 of the
// eight, lanes 4 to 7 features 2, 3, 6 and 7, and the other lanes zeros; multiply_unit() says why.
// A second part lies in lanes 8 to 15 likewise.
template <int kTokens>
struct ChunkInputs {
  uint32_t steps[kUnitSteps][kTokens == 1 ? 2 : 4];
};

__device__ inline void load_shared(uint32_t (&words)[4], uint32_t address) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}
__device__ inline void store_shared(uint32_t address, uint4 value) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value.x),
               "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

// kMaxParts: stream_parts() of the instance.
template <int kTokens, int kMaxParts>
class FusedInputs {
 public:
  // How many parts are multiplied.
  static constexpr int kKeptParts = multiplied_parts(kTokens, kMaxParts);

  // memory: address of [num_tokens] rows of `stride` bytes in shared memory, where a warp keeps its
  // chunks from pass to pass; not used if !is_kept. num_parts: of these inputs, up to kMaxParts.
  // Before several tokens' inputs of more than one part are loaded, join() has to be called.
  __device__ FusedInputs(uint32_t memory, int stride, int num_tokens, const uint32_t* words,
                         int features, bool is_kept, int num_parts)
      : memory_(memory),
        stride_(stride),
        num_tokens_(num_tokens),
        words_(words),
        features_(features),
        is_kept_(kTokens == 1 || is_kept),
        num_parts_(num_parts) {
    if (!is_kept_) return;
    const uint32_t of_chunk = kTokens == 1 ? 1 : (1u << num_tokens) - 1;
    const int count = num_chunks() * kTokens * parts();
    missing_ =
        (kTokens == 1 ? ~0u : of_chunk * 0x01010101u) & (count < 32 ? (1u << count) - 1 : ~0u);
  }

  // How many chunks of the product's inputs the warp multiplies.
  __device__ int num_chunks() const {
    return (features_ / kUnitFeatures - reread_warp_index() + kFusedWarps - 1) / kFusedWarps;
  }

  // With several tokens, asks for the warp's i-th chunk, so that it is on its way while the warp
  // waits for weights. What is kept comes from shared memory when load() is called. kSetsKept: then
  // the chunk gets values too. Without them the compiler carries the registers of a chunk from one
  // to the next, through attention, where wide heads leave none. A second unit in registers leaves
  // none for the values.
  template <bool kSetsKept>
  __device__ void ask(ChunkInputs<kTokens>& chunk, int i) const {
    if constexpr (kTokens > 1) {
      if (is_kept_ && !kSetsKept) return;
      const bool has_words = !is_kept_ && reread_lane_index() / 4 < num_tokens_;
#pragma unroll
      for (auto& words : chunk.steps) {
#pragma unroll
        for (uint32_t& word : words) word = has_words ? kMissing : 0;
      }
      if (!is_kept_) ask_words(chunk, lane_words(i));
    }
  }

  // Waits for the warp's i-th chunk, which ask() has been called for, and loads it.
  __device__ void load(ChunkInputs<kTokens>& chunk, int i) {
    if constexpr (kTokens > 1) {
      if (!is_kept_) return wait_for_words(chunk, i);
    }
    wait_for(i);
    const int lane = reread_lane_index();
    const int token = kTokens == 1 ? 0 : lane / 4;
    const bool is_needed = kTokens == 1 ? lane < 8 * parts() : token < num_tokens_;
    const int part = kKeptParts > 1 ? lane / 8 % 2 : 0;
    const uint32_t address = kept(is_needed ? token : 0, i, part) + lane % 4 * 16;
    const bool is_first_half = kKeptParts > 1 ? lane / 4 % 2 == 0 : lane < 4;
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) {
      uint32_t words[4] = {};
      if (is_needed) load_shared(words, address + step * 64);
      if constexpr (kTokens == 1) {
        chunk.steps[step][0] = is_first_half ? words[0] : words[1];
        chunk.steps[step][1] = is_first_half ? words[2] : words[3];
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) chunk.steps[step][j] = words[j];
      }
    }
  }

  // Waits for all chunks of the warp. Other blocks rely on every block having read all words, even
  // a block that has nothing to multiply.
  __device__ void wait_for_all() {
    for (int i = 0; i < num_chunks(); ++i) wait_for(i);
  }

  // Brings the warp's chunks of both parts of several tokens' stream and keeps them as one: the
  // first part and the second one times its token's factor. wait_for_factors(): waits for them and
  // returns them, of all tokens. The first part was published before the second one was computed,
  // and the factors come last.
  template <typename WaitForFactors>
  __device__ void join(WaitForFactors wait_for_factors) {
    wait_for_all();
    const float* factors = nullptr;
#pragma unroll 1
    for (int i = 0; i == 0 || i < num_chunks(); ++i) {
      uint4 added[kTokens];
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        added[token] = has_chunk(i, token) ? missing_words() : uint4{};
      }
      const int lane = reread_lane_index();
      const uint32_t* const source = words_ + features_ / 2 + chunk_words(i) + lane * 4;
      poll([&] {  // as in wait_for()
        load_if_missing(added[0], source);
        return is_missing(added[0]);
      });
      poll([&] {
        bool missing = false;
#pragma unroll
        for (int token = 0; token < kTokens; ++token) {
          load_if_missing(added[token], source + token * row_words());
        }
#pragma unroll
        for (const uint4& words : added) missing |= is_missing(words);
        return missing;
      });
      if (i == 0) factors = wait_for_factors();
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (!has_chunk(i, token)) continue;
        add_to_kept(kept(token, i, 0) + lane * 16, added[token], factors[token]);
      }
    }
    __syncwarp();
  }

 private:
  // How many loads of 16 bytes a lane has under way at a time. A warp has 7 chunks of a single
  // token in the down projection of an 8B model; a chunk of eight tokens is 8 loads.
  static constexpr int kAtOnce = 8;

  __device__ int chunk_words(int i) const {
    return (reread_warp_index() + i * kFusedWarps) * (kUnitFeatures / 2);
  }
  // A constant for the compiler where there is only one.
  __device__ int parts() const { return kKeptParts == 1 ? 1 : num_parts_; }
  __device__ bool has_chunk(int i, int token) const {
    return i < num_chunks() && token < num_tokens_;
  }
  // From one token's words to the next one's.
  __device__ int row_words() const {
    return kMaxParts == 1 ? features_ / 2 : num_parts_ * (features_ / 2);
  }
  // Adds eight features times a factor to those that are kept at an address.
  __device__ static void add_to_kept(uint32_t address, const uint4& added, float factor) {
    uint32_t kept[4];
    load_shared(kept, address);
    const auto sum = [&](uint32_t stream, uint32_t pair) {
      return pack_pair<__nv_bfloat16>(low_bfloat16(stream) + factor * low_bfloat16(pair),
                                      high_bfloat16(stream) + factor * high_bfloat16(pair));
    };
    store_shared(address, make_uint4(sum(kept[0], added.x), sum(kept[1], added.y),
                                     sum(kept[2], added.z), sum(kept[3], added.w)));
  }
  // The address of a chunk that is kept. Without parts, chunks lie in the order of their features.
  __device__ uint32_t kept(int token, int i, int part) const {
    const int words = kKeptParts == 1
                          ? chunk_words(i)
                          : kept_chunk(reread_warp_index(), i, part, features_ / kUnitFeatures) *
                                (kUnitFeatures / 2);
    return memory_ + token * stride_ + words * 4;
  }

  // A chunk is in shared memory when no lane misses any of its words.
  __device__ void wait_for(int i) {
    const int bit = i * kTokens * parts();
    const uint32_t of_chunk = (kTokens > 1 ? 0xffu : parts() == 1 ? 1u : 3u) << bit;
    const int first = kTokens == 1 ? bit / kAtOnce * kAtOnce : bit;
    // With several tokens, the words of the first token arrive about when those of all do. Asking
    // for the words of all tokens again and again would take the memory system from the blocks that
    // still compute.
    if constexpr (kTokens > 1) wait_for<1>(first, 1u << first);
    wait_for<kAtOnce>(first, of_chunk);
    __syncwarp();
  }
  template <int kCount>
  __device__ void wait_for(int first, uint32_t bits) {
    poll([&] {
      if (!__any_sync(kFullWarp, (missing_ & bits) != 0)) return false;
      ask<kCount>(first);
      return true;
    });
  }

  // Asks once for the words that the lane still misses, of kCount bits of missing_ from `first` on,
  // and stores in shared memory those that have been published.
  template <int kCount>
  __device__ void ask(int first) {
    const int lane = reread_lane_index();
    uint4 values[kCount];
    const auto misses = [&](int k) { return first + k < 32 && (missing_ >> (first + k) & 1) != 0; };
    const auto part = [&](int k) { return kKeptParts == 1 ? 0 : k & (parts() - 1); };
    const auto chunk = [&](int k) { return (first + k) / kTokens >> (parts() - 1); };
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      values[k] = misses(k) ? missing_words() : uint4{};
      const int row = part(k) * (features_ / 2) + k % kTokens * row_words();
      load_if_missing(values[k], words_ + row + chunk_words(chunk(k)) + lane * 4);
    }
    uint32_t found = 0;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (!misses(k) || is_missing(values[k])) continue;
      store_shared(kept(k % kTokens, chunk(k), part(k)) + lane * 16, values[k]);
      found |= 1u << k;
    }
    missing_ &= ~(found << first);
  }

  // Asks for the words of a chunk that the lane still misses.
  __device__ void ask_words(ChunkInputs<kTokens>& chunk, const uint32_t* source) const {
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) {
      load_if_missing(chunk.steps[step], source + step * 16);
    }
  }
  // Where the exchange has the lane's words of a chunk. Lanes without a token read those of the
  // first one.
  __device__ const uint32_t* lane_words(int i) const {
    const int lane = reread_lane_index();
    return words_ + (lane / 4 < num_tokens_ ? lane / 4 : 0) * (features_ / 2) + chunk_words(i) +
           lane % 4 * 4;
  }

  // Waits for the words of a chunk that is not kept, which ask() has asked for.
  __device__ void wait_for_words(ChunkInputs<kTokens>& chunk, int i) const {
    const uint32_t* const source = lane_words(i);
    poll([&] {
      bool missing = false;
#pragma unroll
      for (int step = 0; step < kUnitSteps; ++step) missing |= is_missing(chunk.steps[step]);
      if (!missing) return false;
      poll([&] {  // as in wait_for()
        load_if_missing(chunk.steps[0], source);
        return is_missing(chunk.steps[0]);
      });
      ask_words(chunk, source);
      return true;
    });
  }

  uint32_t memory_;
  int stride_;
  int num_tokens_;
  const uint32_t* words_;
  int features_;
  bool is_kept_;
  int num_parts_;
  uint32_t missing_ = 0;  // bit i * kTokens + token, or i * num_parts + part: the lane's 16 bytes
                          // of chunk i
};

}  // namespace tessera
