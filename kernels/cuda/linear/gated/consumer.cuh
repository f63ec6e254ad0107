// The multiplying side of the gated product: the work of a warpgroup. tiles.cuh has the terms.
#pragma once

#include "kernels/cuda/linear/gated/tiles.cuh"
#include "kernels/cuda/linear/quads.cuh"
#include "kernels/cuda/primitives/activation.cuh"
#include "kernels/cuda/primitives/cluster.cuh"
#include "kernels/cuda/primitives/ring_position.cuh"

namespace tessera {

template <typename Config>
class GatedConsumer {
 public:
  // `warpgroup` counts those that multiply.
  __device__ GatedConsumer(GatedShared<Config>& shared, const GatedArguments& arguments,
                           int warpgroup)
      : shared_(shared), arguments_(arguments), first_row_(warpgroup * kWarpgroupRows) {}

  __device__ void run() {
    for_each_gated_tile<Config>(arguments_, [&](const GatedTile& tile) {
      if (tile.token + first_row_ >= arguments_.num_tokens) return pass();
      float sums[Config::kSums];
      multiply(sums);
      if (arguments_.activation == Activation::kSilu) {
        store<Activation::kSilu>(tile, sums);
      } else {
        store<Activation::kGeluTanh>(tile, sums);
      }
    });
  }

 private:
  using Element = typename Config::Element;
  // Of a tile's results, a thread has two neighbouring features of each eight, for two tokens.
  static constexpr int kVectors = Config::kFeatures / 8;

  // Computes the sums of a tile. While the tensor cores compute one step, the next one's products
  // are asked for.
  __device__ __forceinline__ void multiply(float (&sums)[Config::kSums]) {
    int previous_stage = 0;
    for (int step = 0; step < arguments_.num_steps; ++step) {
      mbarrier_wait(&shared_.full[position_.stage], position_.parity);
      const GatedStage<Config>& stage = shared_.stages[position_.stage];
      const auto tokens = MatrixDescriptor::of_rows(stage.tokens + first_row_ * kPanelColumns);
      const auto weights = MatrixDescriptor::of_rows(stage.weights);
      pin_registers(sums);
      wgmma_fence();
#pragma unroll
      for (int feature = 0; feature < kPanelColumns; feature += 16) {
        const int bytes = feature * static_cast<int>(sizeof(Element));
        wgmma_rows<Element>(sums, tokens.advanced(bytes), weights.advanced(bytes),
                            step > 0 || feature > 0);
      }
      wgmma_commit();
      if (step > 0) {
        wgmma_wait<1>();
        release(previous_stage);
      }
      previous_stage = position_.stage;
      position_.advance(1, Config::kStages);
    }
    wgmma_wait<0>();
    pin_registers(sums);
    release(previous_stage);
  }

  // Walks the steps of a tile of which the warpgroup has no tokens.
  __device__ void pass() {
    for (int step = 0; step < arguments_.num_steps; ++step) {
      mbarrier_wait(&shared_.full[position_.stage], position_.parity);
      release(position_.stage);
      position_.advance(1, Config::kStages);
    }
  }

  // A lane for each of the two blocks tells it that the warp is done with the stage.
  __device__ void release(int stage) const {
#pragma unroll
    for (int rank = 0; rank < kGatedPairBlocks; ++rank) {
      if (arrives_for_warp(lane_index() ^ rank)) {
        mbarrier_arrive_in_cluster(&shared_.empty[stage], rank);
      }
    }
  }

  // The lane's results of vector `index`, of its first token (x, y) and of the one 8 further on
  // (z, w).
  template <Activation kActivation>
  __device__ static float4 result(const float (&sums)[Config::kSums], int index) {
    const float* const gate = sums + 4 * index;
    const float* const up = gate + Config::kSums / 2;
    return {activate<kActivation>(gate[0]) * up[0], activate<kActivation>(gate[1]) * up[1],
            activate<kActivation>(gate[2]) * up[2], activate<kActivation>(gate[3]) * up[3]};
  }

  // Stores the tile's results, 16 bytes at a time. All lanes of the warp together.
  template <Activation kActivation>
  __device__ __forceinline__ void store(const GatedTile& tile,
                                        const float (&sums)[Config::kSums]) const {
    const int warp_row = warp_index() % (kWarpgroupSize / kWarpSize) * 16;
    const int token = tile.token + first_row_ + warp_row + lane_index() / 4;
#pragma unroll
    for (int begin = 0; begin < kVectors; begin += 4) {
      constexpr int kRest = kVectors % 4;
      const int count = begin + 4 <= kVectors ? 4 : kRest;
      float4 results[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < count) results[i] = result<kActivation>(sums, begin + i);
      }
      uint32_t first[4] = {};
      uint32_t second[4] = {};
      if (count == 4) {
        round_to_quads<Element, 4>(results, first, second);
      } else {
        round_to_quads<Element, kRest>(results, first, second);
      }
      const int feature = tile.feature + (begin + lane_index() % 4) * 8;
      if (lane_index() % 4 >= count || feature >= arguments_.intermediate_size) continue;
      Element* const out =
          static_cast<Element*>(arguments_.out) + token * arguments_.intermediate_size + feature;
      if (token < arguments_.num_tokens) {
        *reinterpret_cast<uint4*>(out) = {first[0], first[1], first[2], first[3]};
      }
      if (token + 8 < arguments_.num_tokens) {
        *reinterpret_cast<uint4*>(out + 8 * arguments_.intermediate_size) = {second[0], second[1],
                                                                             second[2], second[3]};
      }
    }
  }

  GatedShared<Config>& shared_;
  const GatedArguments& arguments_;
  const int first_row_;  // of the tile's tokens, which the warpgroup multiplies
  RingPosition position_;
};

}  // namespace tessera
