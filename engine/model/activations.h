// The scratch tensors of a step, from its inputs to the sampled tokens, allocated once at their
// largest.
#pragma once

#include "engine/model/forward_batch.h"
#include "engine/model/sampler.h"
#include "kernels/operations.h"
#include "model_loaders/model_config.h"

namespace tessera {

struct Activations {
  // Takes every tensor from `arena` (which may be measuring only).
  Activations(Arena& arena, const ModelConfig& config, const BackendLimits& limits,
              int64_t page_size, const Operations& operations);

  // Bytes that an arena needs for the above.
  static size_t size_bytes(const ModelConfig& config, const BackendLimits& limits,
                           int64_t page_size, const Operations& operations);

  StepInputs inputs;
  Sampler sampler;
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
