// Matrix products of the fused decode kernel, for up to kTokens tokens at a time.
#pragma once

#include "kernels/cuda/decode_step/inputs.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/mma.cuh"

namespace tessera {

// The row of a unit that a lane reads. It is chosen so that the two rows that a quarter of a warp
// reads at a time lie in different banks, given how the copy engine swizzles rows.
__device__ inline int unit_row(int lane) { return lane / 8 + lane / 4 % 2 * 4; }

// The lane's share of a unit's weights.
struct UnitWeights {
  uint32_t steps[kUnitSteps][4];

  // Reads the next unit of the ring and gives its stage back.
  __device__ void load(UnitRing& ring) {
    constexpr uint32_t kPanelBytes = kUnitRows * 128;
    const int lane = reread_lane_index();
    const int row = unit_row(lane);
    const uint32_t unit = ring.wait() + row * 128;
    const uint32_t offsets[2] = {static_cast<uint32_t>((lane % 4) ^ row) * 16,
                                 static_cast<uint32_t>((lane % 4 + 4) ^ row) * 16};
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) {
      load_shared(steps[step], unit + step / 2 * kPanelBytes + offsets[step % 2]);
    }
    uint32_t loaded = 0;  // see release_loaded()
#pragma unroll
    for (const auto& words : steps) loaded |= words[0];
    ring.release_loaded(loaded);
  }
};

// How many units a warp reads into registers before it waits for their inputs, as if its ring were
// so much longer. With a single token these are all units of a pass for one chunk. The instance for
// any block reads half of them, because its warp that finishes the products needs more registers;
// so does that for blocks other than Llama's over float8_e4m3, because of its attention. With
// several tokens the inputs leave registers for two units; with attention that takes more than
// most, or what joins the parts of the stream, for one.
constexpr int units_ahead(int tokens, FusedInstance instance) {
  const bool has_large_attention = instance == FusedInstance::kPreNormFp8;
  const bool needs_registers = computes_any_block(instance) || has_large_attention;
  const int most = tokens > 1 ? 2 : kPassGroups;
  return needs_registers ? most / 2 : most;
}

// A lane's sums of each group of a pass, for row unit_row(lane) of the group. With one token, lanes
// with lane % 4 == 0 have the sum, as the first of the two; those with lane % 4 == 1 have the sum
// of a second part. With eight tokens, a lane has the sums of token 2 (lane % 4) and the next.
struct PassSums {
  float groups[kPassGroups][2];
};

// Adds a unit's products to the lane's sums of its group.
//
// A product does not care in which order it sums features as long as both operands agree. So the 16
// bytes that a lane reads of a row are, as they are, its whole share of a tensor-core operand:
// features 0, 1, 4 and 5 become those of row lane / 4 of the tile, features 2, 3, 6 and 7 those of
// row lane / 4 + 8. Each half of the tile needs its own features of a token in the other operand.
// So a single token lies in two columns, and each of eight tokens has its column in two products.
// The sums of one half with the other half's features mean nothing.
template <int kTokens>
__device__ void multiply_unit(float (&sums)[2], const UnitWeights& unit,
                              const ChunkInputs<kTokens>& inputs) {
  const auto& weights = unit.steps;
  float partial[4][4] = {};  // side by side, to hide the latency of one
#pragma unroll
  for (int step = 0; step < kUnitSteps; ++step) {
    if constexpr (kTokens == 1) {
      const auto& input = inputs.steps[step];
      multiply_add<__nv_bfloat16>(partial[step % 4], weights[step], input[0], input[1]);
    } else {
      const auto& input = inputs.steps[step];
      multiply_add<__nv_bfloat16>(partial[step % 2], weights[step], input[0], input[1]);
      multiply_add<__nv_bfloat16>(partial[2 + step % 2], weights[step], input[2], input[3]);
    }
  }
  if constexpr (kTokens == 1) {
    sums[0] += ((partial[0][0] + partial[1][0]) + (partial[2][0] + partial[3][0])) +
               ((partial[0][3] + partial[1][3]) + (partial[2][3] + partial[3][3]));
  } else {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sums[i] += (partial[0][i] + partial[1][i]) + (partial[2][2 + i] + partial[3][2 + i]);
    }
  }
}

// Adds to `sums` what the warp's chunks contribute to the groups of a pass.
template <FusedInstance kInstance, int kTokens, int kMaxParts>
__device__ void accumulate_pass(PassSums& sums, FusedInputs<kTokens, kMaxParts>& inputs,
                                int num_groups, UnitRing& ring) {
  constexpr int kAhead = units_ahead(kTokens, kInstance);
#pragma unroll 1
  for (int i = 0; i < inputs.num_chunks(); ++i) {
    ChunkInputs<kTokens> chunk;
    inputs.template ask<kAhead == 1>(chunk, i);
#pragma unroll
    for (int first = 0; first < kPassGroups; first += kAhead) {
      if (first >= num_groups) break;
      UnitWeights units[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        if (first + j < num_groups) units[j].load(ring);
      }
      if (first == 0) inputs.load(chunk, i);
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        if (first + j >= num_groups) break;
        multiply_unit<kTokens>(sums.groups[first + j], units[j], chunk);
      }
    }
  }
}

// rows: of kTokens tokens, or of the parts of a single one.
template <int kTokens, int kSumRows>
__device__ void store_sums(float (&rows)[kSumRows][kSumStride], const PassSums& sums) {
  const int lane = reread_lane_index();
#pragma unroll
  for (int group = 0; group < kPassGroups; ++group) {
    const int row = group * kUnitRows + unit_row(lane);
    if constexpr (kTokens == 1) {
      if (lane % 4 < kSumRows) rows[lane % 4][row] = sums.groups[group][0];
    } else {
      rows[lane % 4 * 2][row] = sums.groups[group][0];
      rows[lane % 4 * 2 + 1][row] = sums.groups[group][1];
    }
  }
}

}  // namespace tessera
