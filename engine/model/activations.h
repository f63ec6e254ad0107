// The scratch tensors of a forward pass, allocated once at their largest.
#pragma once

#include "kernels/operations.h"
#include "model_loaders/model_config.h"

namespace tessera {

class Arena;

struct Activations {
  // Takes every tensor from `arena` (which may be measuring only).
  Activations(Arena& arena, const ModelConfig& config, const BackendLimits& limits,
              const Operations& operations);

  // First dimension max_tokens; cut to the step's tokens with slice().
  Tensor residual;             // float32    [max_tokens, hidden_size]
  Tensor normed;               // activation [max_tokens, hidden_size]
  Tensor squares;              // float32    [max_tokens, ceil(hidden_size / 32)], see PendingNorm
  Tensor qkv;                  // activation [max_tokens, (num_heads + 2 num_kv_heads) head_dim]
  Tensor query;                // activation [max_tokens, num_heads, head_dim]
  Tensor attention_out;        // activation [max_tokens, num_heads, head_dim]
  Tensor gate_up;              // activation [max_tokens, 2 intermediate_size]
  Tensor feed_forward;         // activation [max_tokens, intermediate_size]
  Tensor attention_workspace;  // float32
  // First dimension max_sequences: the tokens whose logits are needed.
  Tensor sampled_residual;  // float32    [max_sequences, hidden_size]
  Tensor sampled_normed;    // activation [max_sequences, hidden_size]
  Tensor logits;            // float32    [max_sequences, vocab_size]
};

}  // namespace tessera
