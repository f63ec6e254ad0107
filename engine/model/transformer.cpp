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

LayerStep Transformer::step_of(const ForwardBatch& batch) const {
  return {.residual = activations_.residual.slice(0, batch.token_ids.dim(0)),
          .positions = batch.positions,
          .kv_slots = batch.kv_slots,
          .attention = batch.attention,
          .rope_tables = weights_.rope_tables};
}

LayerTensors Transformer::layer(size_t index) const {
  return {.index = static_cast<int64_t>(index),
          .weights = weights_.layers[index],
          .pages = pages_[index]};
}

void Transformer::run_to_last_layer(const ForwardBatch& batch, const LayerStep& step) {
  const LayerRunner& runner = activations_.layers;
  const std::vector<LayerWeights>& layers = weights_.layers;
  operations_.embed(step.residual, weights_.embed_tokens, batch.token_ids,
                    static_cast<float>(runner.block().embedding_multiplier));
  runner.begin(step, layers.front());
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    runner.attention_block(step, layer(i));
    runner.feed_forward_block(step, layer(i), &layers[i + 1]);
  }
}

void Transformer::forward(const ForwardBatch& batch) {
  const LayerStep step = step_of(batch);
  run_to_last_layer(batch, step);
  activations_.layers.attention_block(step, last_layer());
  activations_.layers.feed_forward_block(step, last_layer(), nullptr);
}

void Transformer::fill_cache(const ForwardBatch& batch) {
  const LayerStep step = step_of(batch);
  run_to_last_layer(batch, step);
  activations_.layers.keys_and_values(step, last_layer());
}

Tensor Transformer::logits(const Tensor& rows) {
  operations_.gather_rows(activations_.sampled_residual.slice(0, rows.dim(0)),
                          activations_.residual, rows);
  return logits_of_sampled(rows.dim(0));
}

Tensor Transformer::logits_of_sampled(int64_t num_rows) {
  const Tensor sampled = activations_.sampled_residual.slice(0, num_rows);
  const Tensor normed = activations_.sampled_normed.slice(0, num_rows);
  const Tensor logits = logits_of_step(num_rows);
  const BlockSpec& block = activations_.layers.block();
  operations_.norm(block.norm, normed, sampled, weights_.norm,
                   activations_.layers.sizes().rms_norm_eps);
  operations_.linear(logits, normed, weights_.lm_head);
  if (block.logit_softcap > 0.0) {
    operations_.softcap(logits, static_cast<float>(block.logit_softcap));
  }
  return logits;
}

bool Transformer::runs_in_one_kernel(const ForwardBatch& batch) const {
  const int64_t num_tokens = batch.token_ids.dim(0);
  // The fused decoder computes the logits of every token.
  return fused_decoder_ != nullptr && batch.sampled_rows.dim(0) == num_tokens &&
         fused_decoder_->takes(num_tokens, batch.attention);
}

Tensor Transformer::sampled_logits(const ForwardBatch& batch) {
  const int64_t num_tokens = batch.token_ids.dim(0);
  const int64_t num_sampled = batch.sampled_rows.dim(0);
  if (batch.sampled_attention.num_sequences > 0) {
    const LayerStep step = step_of(batch);
    run_to_last_layer(batch, step);
    LayerStep sampled = step;
    sampled.residual = activations_.sampled_residual.slice(0, num_sampled);
    sampled.attention = batch.sampled_attention;
    activations_.layers.last_layer(step, last_layer(), batch.sampled_rows, sampled);
    return logits_of_sampled(num_sampled);
  }
  if (runs_in_one_kernel(batch)) {
    const Tensor logits = logits_of_step(num_tokens);
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
