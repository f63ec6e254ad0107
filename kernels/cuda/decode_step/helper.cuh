// The helping warp of the fused decode kernel: it does, beside the others, what would make them
// wait for memory.
#pragma once

#include "kernels/cuda/decode_step/block.cuh"
#include "kernels/cuda/decode_step/exchange.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"

namespace tessera {

__device__ inline void prefetch_to_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// Prefetches the weights of the next two norms to the L2 cache, so that the warp that finishes a
// product does not wait for them.
__device__ inline void prefetch_norm_weights(const FusedLayerPointers& layer,
                                             const float* next_norm, int hidden_size, int thread,
                                             int num_threads) {
  constexpr int kLineElements = 32;  // 128 bytes
  for (int i = thread * kLineElements; i < hidden_size; i += num_threads * kLineElements) {
    prefetch_to_l2(layer.pre_feedforward_layernorm + i);
    prefetch_to_l2(next_norm + i);
  }
}

// For each layer: clears the words of the layer before (exchange.cuh), and prefetches the norms'
// weights and fetches the pointers of the next layer. The fence after clearing takes as long as the
// inputs of a product need to arrive, which is why a warp of its own does this.
template <int kTokens, int kHeadDim, FusedInstance kInstance>
__device__ void help_consumers(const FusedDecodeArguments& arguments,
                               FusedSignals<kTokens, kHeadDim, kInstance>& signals) {
  const int thread = static_cast<int>(blockIdx.x) * kWarpSize + lane_index();
  const int num_threads = static_cast<int>(gridDim.x) * kWarpSize;
  const auto clear = [&](uint32_t* copy, int words) {
    clear_words(copy, words, thread, num_threads);
    const int partial_words =
        2 * fused_partial_words(arguments.attention.heads_per_kv_head, kHeadDim);
    clear_words(copy + arguments.partials + static_cast<int>(blockIdx.x) * partial_words,
                partial_words, lane_index(), kWarpSize);
  };
  for (uint32_t* const copy : arguments.used_copies) clear(copy, arguments.used_words);
  clear_words(arguments.used_claims, fused_claim_words(arguments.num_layers), thread, num_threads);
  for (int layer = 0; layer < arguments.num_layers; ++layer) {
    const bool is_last = layer + 1 == arguments.num_layers;
    const FusedLayerPointers next = arguments.layers[is_last ? layer : layer + 1];
    prefetch_norm_weights(signals.layers[layer % 2],
                          is_last ? arguments.norm : next.input_layernorm,
                          arguments.products[kQkv].features, thread, num_threads);
    mbarrier_wait(&signals.previous_layer_left, layer % 2);
    if (lane_index() == 0) signals.layers[(layer + 1) % 2] = next;
    if (layer > 0) clear(arguments.copies[(layer + 1) % 2], arguments.layout.size);
    __threadfence();
    __syncwarp();
    if (arrives_for_warp(lane_index())) mbarrier_arrive(&signals.words_cleared);
  }
  launch_next_kernel();  // it finds room when the first blocks leave
}

}  // namespace tessera
