// The scratch tensors of a forward pass, allocated once at their largest.
#pragma once

#include "kernels/layer_runner.h"

namespace tessera {

struct ModelConfig;

struct Activations {
  // Takes every tensor from `arena` (which may be measuring only). `operations` are those for the
  // model's block. Throws Error when the block is not one that layers compute.
  Activations(Arena& arena, const ModelConfig& config, const BackendLimits& limits,
              FusedOperations& operations);

  Tensor residual;     // float32 [max_tokens, hidden_size]; cut to the step's tokens with slice()
  LayerRunner layers;  // with the scratch of a layer
  // First dimension max_sequences: the tokens whose logits are needed.
  Tensor sampled_residual;  // float32    [max_sequences, hidden_size]
  Tensor sampled_normed;    // activation [max_sequences, hidden_size]
  Tensor logits;            // float32    [max_sequences, vocab_size]
};

}  // namespace tessera
