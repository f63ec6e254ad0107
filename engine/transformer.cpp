#include "engine/transformer.h"

#include <cmath>

namespace tessera {

void Transformer::forward(const ForwardBatch& batch) {
  const int64_t num_tokens = batch.token_ids.dim(0);
  backend_.embed(activations_.residual.slice(0, num_tokens), weights_.embed_tokens,
                 batch.token_ids);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const LayerWeights& layer = weights_.layers[static_cast<size_t>(i)];
    attention_block(layer, cache_.layer(i), batch);
    feed_forward_block(layer, num_tokens);
  }
}

void Transformer::attention_block(const LayerWeights& layer, const KvPages& pages,
                                  const ForwardBatch& batch) {
  const int64_t num_tokens = batch.token_ids.dim(0);
  const auto cut = [&](const Tensor& tensor) { return tensor.slice(0, num_tokens); };
  const Tensor residual = cut(activations_.residual);
  const Tensor normed = cut(activations_.normed);
  const Tensor qkv = cut(activations_.qkv);
  const Tensor query = cut(activations_.query);
  const Tensor out = cut(activations_.attention_out);

  backend_.rms_norm(normed, residual, layer.input_layernorm, epsilon());
  backend_.linear(qkv, normed, layer.qkv_proj);
  backend_.rope_store_kv(query, pages, qkv, batch.positions, batch.kv_slots,
                         weights_.inverse_frequencies);
  backend_.attention(out, {.query = query,
                           .pages = pages,
                           .batch = batch.attention,
                           .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
                           .sliding_window = config_.sliding_window,
                           .workspace = activations_.attention_workspace});
  backend_.linear_add(residual, out.reshape({num_tokens, config_.num_heads * config_.head_dim}),
                      layer.o_proj);
}

void Transformer::feed_forward_block(const LayerWeights& layer, int64_t num_tokens) {
  const auto cut = [&](const Tensor& tensor) { return tensor.slice(0, num_tokens); };
  const Tensor residual = cut(activations_.residual);
  const Tensor normed = cut(activations_.normed);
  const Tensor gate_up = cut(activations_.gate_up);
  const Tensor hidden = cut(activations_.feed_forward);

  backend_.rms_norm(normed, residual, layer.post_attention_layernorm, epsilon());
  backend_.linear(gate_up, normed, layer.gate_up_proj);
  backend_.silu_mul(hidden, gate_up);
  backend_.linear_add(residual, hidden, layer.down_proj);
}

Tensor Transformer::logits(const Tensor& rows) {
  const auto cut = [&](const Tensor& tensor) { return tensor.slice(0, rows.dim(0)); };
  const Tensor sampled = cut(activations_.sampled_residual);
  const Tensor normed = cut(activations_.sampled_normed);
  const Tensor logits = cut(activations_.logits);
  backend_.gather_rows(sampled, activations_.residual, rows);
  backend_.rms_norm(normed, sampled, weights_.norm, epsilon());
  backend_.linear(logits, normed, weights_.lm_head);
  return logits;
}

}  // namespace tessera
