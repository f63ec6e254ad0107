// The weights of a model on the device, fused as the forward pass wants them.
#pragma once

#include <vector>

#include "engine/model/weight_reader.h"
#include "kernels/backend.h"
#include "model_loaders/checkpoint.h"
#include "model_loaders/model_config.h"

namespace tessera {

// Matrices are [out_features, in_features] in Backend::weight_dtype of their stored dtype; norm
// weights are float32.
struct LayerWeights {
  Tensor input_layernorm;           // [hidden_size]
  Tensor qkv_proj;                  // [(num_heads + 2 num_kv_heads) head_dim, hidden_size]: q, k, v
  Tensor o_proj;                    // [hidden_size, num_heads head_dim]
  Tensor post_attention_layernorm;  // [hidden_size]
  Tensor gate_up_proj;              // [2 intermediate_size, hidden_size]: gate, up
  Tensor down_proj;                 // [hidden_size, intermediate_size]
};

class ModelWeights {
 public:
  // Lays out every tensor the model needs in one buffer of `backend`. Throws Error when the
  // checkpoint lacks one or has it in another shape. Contents are unspecified until read().
  ModelWeights(const ModelConfig& config, const Checkpoint& checkpoint, Backend& backend);

  // Fills the tensors from the same checkpoint, once; see read_weights. Returns the bytes read.
  uint64_t read(const Checkpoint& checkpoint, Backend& backend, bool check_values,
                const LoadProgress& progress);

  // Bytes of the buffer that the constructor will allocate. Same checks of names and shapes.
  static size_t size_bytes(const ModelConfig& config, const Checkpoint& checkpoint,
                           const Backend& backend);

  Tensor embed_tokens;  // [vocab_size, hidden_size]
  std::vector<LayerWeights> layers;
  Tensor norm;                 // [hidden_size]
  Tensor lm_head;              // [vocab_size, hidden_size]; embed_tokens itself when tied
  Tensor inverse_frequencies;  // float32 [head_dim / 2]

  // Bytes of weights that computing one token reads: all but embed_tokens, of which it reads a row.
  uint64_t bytes_per_token() const;
  size_t size_in_memory() const { return buffer_.size_bytes(); }

 private:
  ModelWeights() = default;

  Buffer buffer_;
  std::vector<WeightPiece> pieces_;  // until read(); they point into the checkpoint
};

}  // namespace tessera
