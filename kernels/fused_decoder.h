// One decode step of a whole model as a single device kernel, where a device has one.
//
// Computes what the operations compute one after the other (kernels/layer_runner.h), without their
// rounding of intermediate results to 16 bits in between; the same bits on every run. The
// operations stay the definition, and the fallback for every model that
// Backend::make_fused_decoder() declines.
#pragma once

#include <vector>

#include "kernels/attention_params.h"
#include "kernels/block_sizes.h"
#include "kernels/block_spec.h"
#include "kernels/layer_weights.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

struct FusedDecoderModel {
  BlockSpec block;
  BlockSizes sizes;
  WeightMatrix embed_tokens;  // [vocab_size, hidden_size]
  std::vector<LayerWeights> layers;
  std::vector<KvPages> pages;       // of each layer
  Tensor norm;                      // float32 [hidden_size]
  WeightMatrix lm_head;             // [vocab_size, hidden_size]
  std::vector<Tensor> rope_tables;  // as RopeStoreKvParams::rope_table
};

// A step of sequences with one query token each, in order.
struct FusedDecodeBatch {
  Tensor token_ids;          // int32 [num_sequences], as Operations::embed takes them
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
