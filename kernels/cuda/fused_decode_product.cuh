// Matrix products of the fused decode kernel, for up to kTokens tokens at a time.
//
// The tokens are the rows of tensor-core tiles (mma.cuh), kUnitRows weight rows their columns. A
// product does not care in which order it sums features as long as both operands agree, so a lane
// takes 8 consecutive ones, 16 bytes, for two tiles: the first 4 of them stand in for the features
// that it holds of the first tile, the last 4 for those of the second.
#pragma once

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/fused_decode_block.cuh"
#include "kernels/cuda/fused_decode_exchange.cuh"
#include "kernels/cuda/mma.cuh"

namespace tessera {

inline constexpr int kUnitSteps = kUnitFeatures / 32;  // of 32 features: 8 for each of 4 lanes

// The features of a chunk that a lane multiplies: token lane / 4, features 32 s + 8 (lane % 4) on.
struct ChunkInputs {
  uint4 steps[kUnitSteps];
};

__device__ inline uint4 load_shared(uint32_t address) {
  uint4 value;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address)
               : "memory");
  return value;
}
__device__ inline void store_shared(uint32_t address, uint4 value) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value.x),
               "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

// The row of a unit that the lane's tile column is: such that the two columns which a quarter of a
// warp reads at a time lie in different banks under the swizzle of the copy engine.
__device__ inline int unit_row(int column) { return column / 2 + column % 2 * 4; }

// Adds the products of a unit's rows t and t + 4, t = lane % 4, with token lane / 4.
__device__ inline void multiply_unit(float (&sums)[2], uint32_t unit, const ChunkInputs& inputs) {
  constexpr int kChains = 4;  // sums side by side, to hide the latency of one
  constexpr uint32_t kPanelBytes = kUnitRows * 128;
  const int lane = reread_lane_index();
  const int row = unit_row(lane / 4);
  const uint32_t row_address = unit + row * 128;
  const uint32_t offsets[2] = {static_cast<uint32_t>((lane % 4) ^ row) * 16,
                               static_cast<uint32_t>((lane % 4 + 4) ^ row) * 16};
  uint4 weights[kUnitSteps];
#pragma unroll
  for (int step = 0; step < kUnitSteps; ++step) {
    weights[step] = load_shared(row_address + step / 2 * kPanelBytes + offsets[step % 2]);
  }
  float partial[kChains][4] = {};
#pragma unroll
  for (int step = 0; step < kUnitSteps; ++step) {
    const uint4& input = inputs.steps[step];
    const uint4& weight = weights[step];
    // The lower eight rows of the tile would be tokens too.
    multiply_add<__nv_bfloat16>(partial[step % 2], {input.x, 0, input.y, 0}, weight.x, weight.y);
    multiply_add<__nv_bfloat16>(partial[2 + step % 2], {input.z, 0, input.w, 0}, weight.z,
                                weight.w);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    sums[i] += (partial[0][i] + partial[1][i]) + (partial[2][i] + partial[3][i]);
  }
}

// Input features in shared memory, 16-bit, each warp's own chunks only.
template <int kTokens>
struct SharedInputs {
  uint32_t data;  // address
  int stride;     // bytes, between tokens
  int num_tokens;

  __device__ uint32_t chunk(int token, int chunk) const {
    return data + token * stride + chunk * kUnitFeatures * 2;
  }
  __device__ void load(ChunkInputs& inputs, int chunk_index) const {
    const int lane = reread_lane_index();
    const bool has_token = lane / 4 < num_tokens;
    const uint32_t address = chunk(has_token ? lane / 4 : 0, chunk_index) + lane % 4 * 16;
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) {
      inputs.steps[step] = has_token ? load_shared(address + step * 64) : uint4{};
    }
  }
};

// Brings the lane's features of a chunk from pairs in the exchange, [num_tokens][features / 2].
__device__ inline void load_exchanged(ChunkInputs& inputs, const uint32_t* pairs, int features,
                                      int num_tokens, int chunk_index) {
  const int lane = reread_lane_index();
  const bool has_token = lane / 4 < num_tokens;
  const uint32_t* const source = pairs + (has_token ? lane / 4 : 0) * (features / 2) +
                                 chunk_index * (kUnitFeatures / 2) + lane % 4 * 4;
#pragma unroll
  for (int step = 0; step < kUnitSteps; ++step) {
    inputs.steps[step] = has_token ? missing_words() : uint4{};
  }
  poll([&] {
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) {
      load_if_missing(inputs.steps[step], source + step * 16);
    }
    bool missing = false;
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) missing |= is_missing(inputs.steps[step]);
    return missing;
  });
}

// Brings the warp's chunks of a single token's pairs to shared memory.
template <int kTokens>
__device__ void fetch_inputs(const SharedInputs<kTokens>& inputs, const uint32_t* words,
                             int num_chunks) {
  constexpr int kAtOnce = 8;  // words of an 8B model's feed-forward network need 7
  const int lane = reread_lane_index();
  for (int begin = reread_warp_index(); begin < num_chunks; begin += kAtOnce * kFusedWarps) {
    const auto chunk = [&](int i) { return begin + i * kFusedWarps; };
    uint4 values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      values[i] = chunk(i) < num_chunks ? missing_words() : uint4{};
    }
    poll([&] {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        load_if_missing(values[i], words + chunk(i) * (kUnitFeatures / 2) + lane * 4);
      }
      bool missing = false;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) missing |= is_missing(values[i]);
      return missing;
    });
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (chunk(i) < num_chunks) store_shared(inputs.chunk(0, chunk(i)) + lane * 16, values[i]);
    }
  }
  __syncwarp();
}

// RMSNorm but for its scale: the warp's chunks of weight * residual, and its shares of the sums of
// squares. The scale multiplies the sums of the product (root_mean_square_scale).
//
// All words that registers can hold are asked for at once: a single token's chunks, or one chunk of
// all tokens.
template <int kTokens>
__device__ void normalize_inputs(SharedInputs<kTokens> inputs, const uint32_t* residual,
                                 const float* weight, int hidden_size,
                                 float (&squares)[kTokens][kFusedWarps]) {
  constexpr int kChunksAtOnce = kTokens == 1 ? kMaxNormChunks : 1;
  const int lane = reread_lane_index();
  const int warp = reread_warp_index();
  const int num_chunks = hidden_size / kUnitFeatures;
  float sums[kTokens] = {};
  for (int begin = warp; begin < num_chunks; begin += kChunksAtOnce * kFusedWarps) {
    const auto chunk = [&](int i) { return begin + i * kFusedWarps; };
    const auto feature = [&](int i) { return chunk(i) * kUnitFeatures + lane * 8; };
    // The weights need not wait for anyone.
    Vector<float, 4> factors[kChunksAtOnce][2] = {};
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
      if (chunk(i) >= num_chunks) continue;
      factors[i][0] = load_vector<4>(weight, feature(i) / 4);
      factors[i][1] = load_vector<4>(weight, feature(i) / 4 + 1);
    }
    uint4 words[kChunksAtOnce][kTokens][2];
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        const bool is_needed = chunk(i) < num_chunks && token < inputs.num_tokens;
        words[i][token][0] = words[i][token][1] = is_needed ? missing_words() : uint4{};
      }
    }
    poll([&] {
#pragma unroll
      for (int i = 0; i < kChunksAtOnce; ++i) {
#pragma unroll
        for (int token = 0; token < kTokens; ++token) {
          const uint32_t* const source = residual + token * hidden_size + feature(i);
          load_if_missing(words[i][token][0], source);
          load_if_missing(words[i][token][1], source + 4);
        }
      }
      bool missing = false;
#pragma unroll
      for (int i = 0; i < kChunksAtOnce; ++i) {
#pragma unroll
        for (int token = 0; token < kTokens; ++token) {
          missing |= is_missing(words[i][token][0]) || is_missing(words[i][token][1]);
        }
      }
      return missing;
    });
#pragma unroll
    for (int i = 0; i < kChunksAtOnce; ++i) {
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (chunk(i) >= num_chunks || token >= inputs.num_tokens) continue;
        uint32_t pairs[4];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const uint4& word = words[i][token][j];
          const float x = __uint_as_float(word.x);
          const float y = __uint_as_float(word.y);
          const float z = __uint_as_float(word.z);
          const float w = __uint_as_float(word.w);
          sums[token] += x * x + y * y + z * z + w * w;
          const float(&factor)[4] = factors[i][j].values;
          pairs[2 * j] = pack_pair<__nv_bfloat16>(x * factor[0], y * factor[1]);
          pairs[2 * j + 1] = pack_pair<__nv_bfloat16>(z * factor[2], w * factor[3]);
        }
        store_shared(inputs.chunk(token, chunk(i)) + lane * 16,
                     make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
      }
    }
  }
#pragma unroll
  for (int token = 0; token < kTokens; ++token) {
    const float sum = warp_reduce(sums[token], [](float a, float b) { return a + b; });
    if (lane == 0) squares[token][warp] = sum;
  }
  __syncwarp();
}

__device__ inline float root_mean_square_scale(const float (&squares)[kFusedWarps], int hidden_size,
                                               float epsilon) {
  float sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kFusedWarps; ++warp) sum += squares[warp];
  return rsqrtf(__fdividef(sum, static_cast<float>(hidden_size)) + epsilon);
}

// The warp's share of the sums of the groups of a pass. Features come from `inputs`, or from
// `pairs` in the exchange if that is not null.
template <int kTokens>
__device__ void accumulate_pass(const SharedInputs<kTokens>& inputs, const uint32_t* pairs,
                                const FusedProduct& product, int num_groups, UnitRing& ring,
                                float (&token_sums)[kTokens][kSumStride]) {
  const int lane = reread_lane_index();
  const int num_chunks = product.num_chunks();
  float sums[kPassGroups][2] = {};
#pragma unroll 1
  for (int chunk = reread_warp_index(); chunk < num_chunks; chunk += kFusedWarps) {
    ChunkInputs chunk_inputs;
    if (kTokens > 1 && pairs != nullptr) {
      load_exchanged(chunk_inputs, pairs, product.features, inputs.num_tokens, chunk);
    } else {
      inputs.load(chunk_inputs, chunk);
    }
#pragma unroll
    for (int i = 0; i < kPassGroups; ++i) {
      if (i >= num_groups) break;
      multiply_unit(sums[i], ring.wait(), chunk_inputs);
      ring.release();
    }
  }
  if (lane / 4 < kTokens) {
#pragma unroll
    for (int i = 0; i < kPassGroups; ++i) {
      token_sums[lane / 4][i * kUnitRows + lane % 4] = sums[i][0];
      token_sums[lane / 4][i * kUnitRows + lane % 4 + 4] = sums[i][1];
    }
  }
}

}  // namespace tessera
