// One decode step of a whole model as a single device kernel, where a device has one.
//
// Computes what the operations of Backend compute one after the other, without their rounding of
// intermediate results to 16 bits in between; the same bits on every run. Those operations stay the
// definition and the fallback for every shape that make_fused_decoder() declines.
#pragma once

#include <vector>

#include "kernels/attention_params.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// The tensors of a decoder layer; shapes and dtypes as the operations of Backend take them.
struct FusedDecoderLayer {
  Tensor input_layernorm;           // float32 [hidden_size]
  Tensor qkv_proj;                  // [(num_heads + 2 num_kv_heads) head_dim, hidden_size]: q, k, v
  Tensor o_proj;                    // [hidden_size, num_heads head_dim]
  Tensor post_attention_layernorm;  // float32 [hidden_size]
  Tensor gate_up_proj;              // [2 intermediate_size, hidden_size]: gate, up
  Tensor down_proj;                 // [hidden_size, intermediate_size]
  KvPages pages;
};

struct FusedDecoderModel {
  Tensor embed_tokens;  // [vocab_size, hidden_size]
  std::vector<FusedDecoderLayer> layers;
  Tensor norm;                 // float32 [hidden_size]
  Tensor lm_head;              // [vocab_size, hidden_size]
  Tensor inverse_frequencies;  // float32 [head_dim / 2]
  int64_t num_heads = 0;
  float rms_norm_eps = 0.0f;
  float attention_scale = 0.0f;
  int64_t sliding_window = 0;  // 0: none
};

// A step of sequences with one query token each, in order.
struct FusedDecodeBatch {
  Tensor token_ids;          // int32 [num_sequences], as Backend::embed takes them
  Tensor positions;          // int32 [num_sequences]
  Tensor kv_slots;           // int32 [num_sequences]
  AttentionBatch attention;  // its query_starts are 0, 1, ... num_sequences
};

class FusedDecoder {
 public:
  virtual ~FusedDecoder() = default;
  FusedDecoder(const FusedDecoder&) = delete;
  FusedDecoder& operator=(const FusedDecoder&) = delete;

  // Sequences of a step, at most.
  virtual int64_t max_sequences() const = 0;

  // Writes the tokens' keys and values to their slots and the logits of the next tokens.
  //   logits float32 [num_sequences, vocab_size]
  // Only enqueues work, as every operation of the backend that made it.
  virtual void step(const Tensor& logits, const FusedDecodeBatch& batch) = 0;

 protected:
  FusedDecoder() = default;
};

}  // namespace tessera
