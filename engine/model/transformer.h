// The forward pass of a Llama-style decoder (Touvron et al. 2023): pre-norm blocks of causal
// attention with rotary positions and a SiLU-gated feed-forward network.
#pragma once

#include <memory>
#include <span>

#include "engine/model/activations.h"
#include "engine/model/decoder_weights.h"
#include "engine/model/forward_batch.h"
#include "kernels/fused_decoder.h"
#include "kernels/fused_operations.h"
#include "model_loaders/model_config.h"

namespace tessera {

class Transformer {
 public:
  // Keeps references: everything must outlive the transformer. `pages`: of each layer.
  Transformer(const ModelConfig& config, const DecoderWeights& weights,
              std::span<const KvPages> pages, const Activations& activations,
              FusedOperations& operations)
      : config_(config),
        weights_(weights),
        pages_(pages),
        activations_(activations),
        operations_(operations.operations()),
        fused_(operations) {}

  // What a fused decoder is made of that computes the same.
  FusedDecoderModel fused_model() const;
  // From now on, small decode steps take the decoder, unless it is null.
  void use_fused_decoder(std::unique_ptr<FusedDecoder> decoder) {
    fused_decoder_ = std::move(decoder);
  }

  // Runs all layers over the step's tokens, leaving the residual stream in activations.residual and
  // the keys and values in the cache.
  void forward(const ForwardBatch& batch);

  // Logits of the given tokens of the last forward(), at most max_sequences of them.
  //   rows int32 [num_rows]; returns float32 [num_rows, vocab_size]
  Tensor logits(const Tensor& rows);

  // Logits of the sampled tokens of a step, as forward() and logits() compute them. Small steps of
  // one token per sequence take the fused decoder, if there is one.
  Tensor sampled_logits(const ForwardBatch& batch);

 private:
  void attention_block(const LayerWeights& layer, const KvPages& pages, const ForwardBatch& batch);
  // Leaves the next layer's normed input too, if there is a next.
  void feed_forward_block(const LayerWeights& layer, const LayerWeights* next, int64_t num_tokens);
  PendingNorm pending_norm(int64_t num_tokens) const;
  float epsilon() const { return static_cast<float>(config_.rms_norm_eps); }
  float attention_scale() const;
  // All layers have the same.
  int64_t sliding_window() const { return config_.block.layers.front().sliding_window; }

  const ModelConfig& config_;
  const DecoderWeights& weights_;
  std::span<const KvPages> pages_;
  const Activations& activations_;
  Operations& operations_;
  FusedOperations& fused_;
  std::unique_ptr<FusedDecoder> fused_decoder_;  // may be null
};

}  // namespace tessera
