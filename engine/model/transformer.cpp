#include "engine/model/transformer.h"

namespace tessera {

FusedDecoderModel Transformer::fused_model() const {
  return {.block = activations_.layers.block(),
          .sizes = activations_.layers.sizes(),
          .embed_tokens = weights_.embed_tokens,
          .layers = weights_.layers,
          .pages = {pages_.begin(), pages_.end()},
          .norm = weights_.norm,
          .lm_head = weights_.lm_head,
          .rope_tables = weights_.rope_tables};
}

void Transformer::forward(const ForwardBatch& batch) {
  const LayerRunner& runner = activations_.layers;
  const std::vector<LayerWeights>& layers = weights_.layers;
  const LayerStep step{.residual = activations_.residual.slice(0, batch.token_ids.dim(0)),
                       .positions = batch.positions,
                       .kv_slots = batch.kv_slots,
                       .attention = batch.attention,
                       .rope_tables = weights_.rope_tables};
  operations_.embed(step.residual, weights_.embed_tokens, batch.token_ids,
                    static_cast<float>(runner.block().embedding_multiplier));
  runner.begin(step, layers.front());
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerTensors layer{
        .index = static_cast<int64_t>(i), .weights = layers[i], .pages = pages_[i]};
    const bool is_last = i + 1 == layers.size();
    runner.attention_block(step, layer);
    runner.feed_forward_block(step, layer, is_last ? nullptr : &layers[i + 1]);
  }
}

Tensor Transformer::logits(const Tensor& rows) {
  const auto cut = [&](const Tensor& tensor) { return tensor.slice(0, rows.dim(0)); };
  const Tensor sampled = cut(activations_.sampled_residual);
  const Tensor normed = cut(activations_.sampled_normed);
  const Tensor logits = cut(activations_.logits);
  operations_.gather_rows(sampled, activations_.residual, rows);
  const BlockSpec& block = activations_.layers.block();
  operations_.norm(block.norm, normed, sampled, weights_.norm,
                   activations_.layers.sizes().rms_norm_eps);
  operations_.linear(logits, normed, weights_.lm_head);
  if (block.logit_softcap > 0.0) {
    operations_.softcap(logits, static_cast<float>(block.logit_softcap));
  }
  return logits;
}

Tensor Transformer::sampled_logits(const ForwardBatch& batch) {
  const int64_t num_tokens = batch.token_ids.dim(0);
  // The fused decoder computes the logits of every token.
  if (fused_decoder_ != nullptr && batch.sampled_rows.dim(0) == num_tokens &&
      fused_decoder_->takes(num_tokens, batch.attention)) {
    const Tensor logits = activations_.logits.slice(0, num_tokens);
    fused_decoder_->step(logits, {.token_ids = batch.token_ids,
                                  .positions = batch.positions,
                                  .kv_slots = batch.kv_slots,
                                  .attention = batch.attention});
    return logits;
  }
  forward(batch);
  return logits(batch.sampled_rows);
}

}  // namespace tessera
