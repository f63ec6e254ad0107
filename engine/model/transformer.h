// The forward pass of a decoder: embedding, layers, logits.
#pragma once

#include <memory>
#include <span>

#include "engine/model/activations.h"
#include "engine/model/decoder_weights.h"
#include "engine/model/forward_batch.h"
#include "kernels/fused_decoder.h"
#include "kernels/operations.h"

namespace tessera {

class Transformer {
 public:
  // Keeps references: everything must outlive the transformer. `pages`: of each layer.
  Transformer(const DecoderWeights& weights, std::span<const KvPages> pages,
              const Activations& activations, Operations& operations)
      : weights_(weights), pages_(pages), activations_(activations), operations_(operations) {}

  // What to make a fused decoder of that computes the same.
  FusedDecoderModel fused_model() const;
  // From now on, small decode steps take the decoder, unless it is null.
  void use_fused_decoder(std::unique_ptr<FusedDecoder> decoder) {
    fused_decoder_ = std::move(decoder);
  }
  // Whether sampled_logits() takes the decoder for this step.
  bool runs_in_one_kernel(const ForwardBatch& batch) const;
  // Whether such steps may have several tokens of a sequence.
  bool drafts_in_one_kernel() const {
    return fused_decoder_ != nullptr && fused_decoder_->takes_drafts();
  }

  // Runs all layers over the step's tokens, leaving the residual stream in activations.residual and
  // the keys and values in the cache.
  void forward(const ForwardBatch& batch);

  // The same for the keys and values alone.
  void fill_cache(const ForwardBatch& batch);

  // Logits of the given tokens of the last forward(), at most max_draws of them.
  //   rows int32 [num_rows]; returns float32 [num_rows, vocab_size]
  Tensor logits(const Tensor& rows);

  // Logits of the sampled tokens of a step, which has some, as forward() and logits() compute them
  // but for rounding. Small steps that sample every token take the fused decoder, if there is one.
  // Where sampled_attention is set, the last layer computes only keys and values of tokens that are
  // not sampled, as most of a prompt: it is spared nearly 1 / num_layers of its time.
  Tensor sampled_logits(const ForwardBatch& batch);

  // Where sampled_logits() leaves what it returns: float32 [num_sampled, vocab_size].
  Tensor logits_of_step(int64_t num_sampled) const {
    return activations_.logits.slice(0, num_sampled);
  }

 private:
  LayerStep step_of(const ForwardBatch& batch) const;
  LayerTensors layer(size_t index) const;
  LayerTensors last_layer() const { return layer(weights_.layers.size() - 1); }
  // Embeds the tokens and runs all layers but the last.
  void run_to_last_layer(const ForwardBatch& batch, const LayerStep& step);
  // Logits of the first num_rows rows of activations.sampled_residual.
  Tensor logits_of_sampled(int64_t num_rows);

  const DecoderWeights& weights_;
  std::span<const KvPages> pages_;
  const Activations& activations_;
  Operations& operations_;
  std::unique_ptr<FusedDecoder> fused_decoder_;  // may be null
};

}  // namespace tessera
