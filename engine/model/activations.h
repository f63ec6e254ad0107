// The scratch tensors of a forward pass, allocated once at their largest.
#pragma once

#include "kernels/layer_runner.h"

namespace tessera {

struct ModelConfig;

struct Activations {
  // Takes every tensor from `arena` (which may be measuring only). max_draws: tokens whose logits a
  // step computes. `operations` are those for the model's block. Throws Error when the block is not
  // one that layers compute.
  Activations(Arena& arena, const ModelConfig& config, const BackendLimits& limits,
              int64_t max_draws, FusedOperations& operations);

  Tensor residual;     // float32 [max_tokens, hidden_size]; cut to the step's tokens with slice()
  LayerRunner layers;  // with the scratch of a layer
  // First dimension max_draws: the tokens whose logits are needed.
  Tensor sampled_residual;  // float32    [max_draws, hidden_size]
  Tensor sampled_normed;    // activation [max_draws, hidden_size]
  Tensor logits;            // float32    [max_draws, vocab_size]
};

}  // namespace tessera
