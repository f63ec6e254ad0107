#include "engine/model/transformer.h"

#include <cmath>

namespace tessera {

FusedDecoderModel Transformer::fused_model() const {
  FusedDecoderModel model{.embed_tokens = weights_.embed_tokens.data,
                          .layers = {},
                          .norm = weights_.norm,
                          .lm_head = weights_.lm_head.data,
                          .inverse_frequencies = weights_.inverse_frequencies.front(),
                          .num_heads = config_.num_heads,
                          .rms_norm_eps = epsilon(),
                          .attention_scale = attention_scale(),
                          .sliding_window = sliding_window()};
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const LayerWeights& layer = weights_.layers[static_cast<size_t>(i)];
    model.layers.push_back({.input_layernorm = layer.input_layernorm,
                            .qkv_proj = layer.qkv_proj.data,
                            .o_proj = layer.o_proj.data,
                            .post_attention_layernorm = layer.post_attention_layernorm,
                            .gate_up_proj = layer.gate_up_proj.data,
                            .down_proj = layer.down_proj.data,
                            .pages = pages_[static_cast<size_t>(i)]});
  }
  return model;
}

float Transformer::attention_scale() const {
  return 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
}

void Transformer::forward(const ForwardBatch& batch) {
  const int64_t num_tokens = batch.token_ids.dim(0);
  operations_.embed(activations_.residual.slice(0, num_tokens), weights_.embed_tokens,
                    batch.token_ids);
  fused_.begin_norm(pending_norm(num_tokens), activations_.residual.slice(0, num_tokens),
                    weights_.layers.front().input_layernorm);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const LayerWeights& layer = weights_.layers[static_cast<size_t>(i)];
    attention_block(layer, pages_[static_cast<size_t>(i)], batch);
    const bool is_last = i + 1 == config_.num_layers;
    feed_forward_block(layer, is_last ? nullptr : &layer + 1, num_tokens);
  }
}

PendingNorm Transformer::pending_norm(int64_t num_tokens) const {
  return {.values = activations_.normed.slice(0, num_tokens),
          .squares = activations_.squares.slice(0, num_tokens),
          .epsilon = epsilon()};
}

void Transformer::attention_block(const LayerWeights& layer, const KvPages& pages,
                                  const ForwardBatch& batch) {
  const int64_t num_tokens = batch.token_ids.dim(0);
  const auto cut = [&](const Tensor& tensor) { return tensor.slice(0, num_tokens); };
  const Tensor residual = cut(activations_.residual);
  const PendingNorm normed = pending_norm(num_tokens);
  const Tensor query = cut(activations_.query);
  const Tensor out = cut(activations_.attention_out);

  fused_.normed_linear_rope_store_kv({.query = query,
                                      .pages = pages,
                                      .qkv = cut(activations_.qkv),
                                      .positions = batch.positions,
                                      .kv_slots = batch.kv_slots,
                                      .inverse_frequencies = weights_.inverse_frequencies.front()},
                                     normed, layer.qkv_proj);
  operations_.attention(out, {.query = query,
                              .pages = pages,
                              .batch = batch.attention,
                              .scale = attention_scale(),
                              .sliding_window = sliding_window(),
                              .workspace = activations_.attention_workspace});
  fused_.linear_add_begin_norm(residual, normed,
                               out.reshape({num_tokens, config_.num_heads * config_.head_dim}),
                               layer.o_proj, layer.post_attention_layernorm);
}

void Transformer::feed_forward_block(const LayerWeights& layer, const LayerWeights* next,
                                     int64_t num_tokens) {
  const auto cut = [&](const Tensor& tensor) { return tensor.slice(0, num_tokens); };
  const Tensor residual = cut(activations_.residual);
  const PendingNorm normed = pending_norm(num_tokens);
  const Tensor hidden = cut(activations_.feed_forward);

  fused_.normed_linear_silu_mul(hidden, normed, layer.gate_up_proj, cut(activations_.gate_up));
  if (next == nullptr) {
    operations_.linear_add(residual, hidden, layer.down_proj);
  } else {
    fused_.linear_add_begin_norm(residual, normed, hidden, layer.down_proj, next->input_layernorm);
  }
}

Tensor Transformer::logits(const Tensor& rows) {
  const auto cut = [&](const Tensor& tensor) { return tensor.slice(0, rows.dim(0)); };
  const Tensor sampled = cut(activations_.sampled_residual);
  const Tensor normed = cut(activations_.sampled_normed);
  const Tensor logits = cut(activations_.logits);
  operations_.gather_rows(sampled, activations_.residual, rows);
  operations_.rms_norm(normed, sampled, weights_.norm, epsilon());
  operations_.linear(logits, normed, weights_.lm_head);
  return logits;
}

Tensor Transformer::sampled_logits(const ForwardBatch& batch) {
  const int64_t num_sequences = batch.attention.num_sequences;
  const bool has_one_token_each = batch.attention.max_query_length == 1 &&
                                  batch.token_ids.dim(0) == num_sequences &&
                                  batch.sampled_rows.dim(0) == num_sequences;
  if (fused_decoder_ != nullptr && has_one_token_each &&
      num_sequences <= fused_decoder_->max_sequences()) {
    const Tensor logits = activations_.logits.slice(0, num_sequences);
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
