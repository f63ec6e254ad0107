// The two halves of a decoder's layers on any device: which operations, in which order, with which
// scratch. Neighbours that the device computes at once are its FusedOperations.
#pragma once

#include <span>
#include <string>

#include "kernels/attention_params.h"
#include "kernels/block_sizes.h"
#include "kernels/layer_weights.h"

namespace tessera {

class Arena;
struct BackendLimits;
class FusedOperations;
class Operations;
struct PendingNorm;

// What all layers of a step share.
struct LayerStep {
  Tensor residual;                      // float32 [num_tokens, hidden_size]; every half adds to it
  Tensor positions;                     // int32 [num_tokens]
  Tensor kv_slots;                      // int32 [num_tokens]
  AttentionBatch attention;             // which tokens belong to which sequence
  std::span<const Tensor> rope_tables;  // as RopeStoreKvParams::rope_table
};

struct LayerTensors {
  int64_t index = 0;  // of the layer in the model
  const LayerWeights& weights;
  const KvPages& pages;
};

// The field of `block` that keeps a LayerRunner from computing it, such as "biases.qkv"; empty when
// it computes it.
std::string layer_runner_problem(const BlockSpec& block);

class LayerRunner {
 public:
  // Takes scratch for steps within `limits` from `arena` (which may be measuring only). Keeps a
  // reference to the operations, which are what the backend has for this block. Throws Error naming
  // the field when `block` is not one that the runner computes.
  LayerRunner(Arena& arena, const BlockSpec& block, const BlockSizes& sizes,
              const BackendLimits& limits, FusedOperations& operations);

  const BlockSpec& block() const { return block_; }
  const BlockSizes& sizes() const { return sizes_; }

  // Computes what stands in front of the first half of the first layer: its norm, if it has one.
  void begin(const LayerStep& step, const LayerWeights& first) const;

  // Each computes one half of a layer and then the norm in front of the next half. After the
  // layer's second half that is the first norm of `next`; after the last layer `next` is null, and
  // there is none. Attention writes the step's keys and values to the layer's pages. Behind the
  // second half is a stop point of the device. Throws Error when the layer has not exactly the
  // weights that the block says.
  void attention_block(const LayerStep& step, const LayerTensors& layer) const;
  void feed_forward_block(const LayerStep& step, const LayerTensors& layer,
                          const LayerWeights* next) const;

  // What a layer leaves for later steps: writes the step's keys and values to its pages.
  void keys_and_values(const LayerStep& step, const LayerTensors& layer) const;

  // The last layer of a step, of which only some tokens are needed behind it: of the others it
  // computes keys and values alone. Their residual streams stay as they were.
  //   rows int32 [num_rows]: the tokens that are needed
  //   needed.residual float32 [num_rows, hidden_size]: gets their residual streams behind the layer
  //   needed.attention: these tokens as the only ones of their sequences
  //   needed.positions and needed.kv_slots are not read
  void last_layer(const LayerStep& step, const LayerTensors& layer, const Tensor& rows,
                  const LayerStep& needed) const;

 private:
  // A layer's first half behind queries, keys and values.
  //   query activation [num_tokens, num_heads, head_dim]
  void attend(const LayerStep& step, const LayerTensors& layer, const Tensor& query) const;
  // The end of a half.
  struct HalfEnd {
    const WeightMatrix& weight;  // of the product that ends it
    const Tensor& post_norm;     // of what the half adds; empty: none
    const Tensor* next_norm;  // in front of the half that follows; empty: that half has none; null:
                              // its input has been computed already, or no half follows
  };
  void add_to_residual(const LayerStep& step, const Tensor& x, const HalfEnd& end) const;
  void check_attention_weights(const LayerTensors& layer) const;
  void check_feed_forward_weights(const LayerTensors& layer) const;
  PendingNorm norm(const LayerStep& step) const;
  const Tensor& rope_table(const LayerStep& step, const LayerSpec& layer) const;
  void take_no_rotation(Arena& arena);

  BlockSpec block_;
  BlockSizes sizes_;
  FusedOperations& fused_;
  Operations& operations_;
  // First dimension max_tokens; cut to the step's tokens.
  Tensor normed_;               // activation [max_tokens, hidden_size]
  Tensor squares_;              // float32, see PendingNorm
  Tensor qkv_;                  // activation [max_tokens, (num_heads + 2 num_kv_heads) head_dim]
  Tensor query_;                // activation [max_tokens, num_heads, head_dim]
  Tensor attention_out_;        // activation [max_tokens, num_heads, head_dim]
  Tensor gate_up_;              // activation [max_tokens, 2 intermediate_size]
  Tensor hidden_;               // activation [max_tokens, intermediate_size]
  Tensor half_out_;             // float32 [max_tokens, hidden_size], where halves end in a norm
  Tensor attention_workspace_;  // float32
  Tensor no_rotation_;          // a RoPE table, where some layer rotates nothing
};

}  // namespace tessera
