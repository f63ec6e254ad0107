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

// A step of few tokens: one of each sequence, or several where its next tokens are drafted.
struct FusedDecodeBatch {
  Tensor token_ids;          // int32 [num_tokens], as Operations::embed takes them
  Tensor positions;          // int32 [num_tokens]
  Tensor kv_slots;           // int32 [num_tokens]
  AttentionBatch attention;  // all its sequences are decodes
};

class FusedDecoder {
 public:
  virtual ~FusedDecoder() = default;
  FusedDecoder(const FusedDecoder&) = delete;
  FusedDecoder& operator=(const FusedDecoder&) = delete;

  // Whether a step of so many tokens runs here, and faster than one operation after the other.
  virtual bool takes(int64_t num_tokens, const AttentionBatch& batch) const = 0;
  // Whether a step may have several tokens of a sequence, if these are few.
  virtual bool takes_drafts() const = 0;

  // Writes the tokens' keys and values to their slots and the logits of what follows each token.
  //   logits float32 [num_tokens, vocab_size]
  // Only enqueues work, as every operation of the backend that made it. Steps that takes() declines
  // because they would be slower are computed all the same; those of too many tokens, of contexts
  // too long for so many tokens, with sequences that are no decodes, or with several tokens of one
  // where there are no drafts, are an error.
  virtual void step(const Tensor& logits, const FusedDecodeBatch& batch) = 0;

 protected:
  FusedDecoder() = default;
};

}  // namespace tessera
