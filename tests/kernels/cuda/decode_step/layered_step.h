// A decode step of a model layer by layer, which is what a FusedDecoder computes at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "kernels/backend_limits.h"
#include "kernels/fused_decoder.h"
#include "kernels/layer_runner.h"
#include "kernels/tensor/buffer.h"
#include "tests/kernels/for_each_backend.h"

namespace tessera {

class LayeredStep {
 public:
  // For steps like `batch`. `operations` compute the layers; they and the model must outlive this.
  LayeredStep(Backend& backend, FusedOperations& operations, const FusedDecoderModel& model,
              const FusedDecodeBatch& batch)
      : backend_(backend), model_(model) {
    const int64_t tokens = batch.token_ids.dim(0);
    const BackendLimits limits{.max_tokens = tokens,
                               .max_sequences = tokens,
                               .max_context_length = batch.attention.max_context_length,
                               .num_heads = model.sizes.num_heads,
                               .num_kv_heads = model.sizes.num_kv_heads,
                               .head_dim = model.sizes.head_dim};
    Arena measure;
    LayerRunner(measure, model.block, model.sizes, limits, operations);
    own(DType::kFloat32, {static_cast<int64_t>(measure.used_bytes() / sizeof(float))});
    arena_ = Arena(owned_.back().buffer);
    runner_.emplace(arena_, model.block, model.sizes, limits, operations);
    residual_ = own(DType::kFloat32, {tokens, model.sizes.hidden_size});
    normed_ = own(backend.operations().activation_dtype(), {tokens, model.sizes.hidden_size});
  }

  // Writes the batch's keys and values to their slots and the logits behind all its tokens.
  void run(const Tensor& logits, const FusedDecodeBatch& batch) {
    Operations& operations = backend_.operations();
    const LayerStep step{.residual = residual_,
                         .positions = batch.positions,
                         .kv_slots = batch.kv_slots,
                         .attention = batch.attention,
                         .rope_tables = model_.rope_tables};
    operations.embed(residual_, model_.embed_tokens, batch.token_ids,
                     static_cast<float>(model_.block.embedding_multiplier));
    runner_->begin(step, model_.layers.front());
    for (size_t l = 0; l < model_.layers.size(); ++l) {
      const LayerTensors layer{
          .index = static_cast<int64_t>(l), .weights = model_.layers[l], .pages = model_.pages[l]};
      const bool is_last = l + 1 == model_.layers.size();
      runner_->attention_block(step, layer);
      runner_->feed_forward_block(step, layer, is_last ? nullptr : &model_.layers[l + 1]);
    }
    operations.rms_norm(normed_, residual_, model_.norm, model_.sizes.rms_norm_eps);
    operations.linear(logits, normed_, model_.lm_head);
    if (model_.block.logit_softcap > 0.0) {
      operations.softcap(logits, static_cast<float>(model_.block.logit_softcap));
    }
  }

 private:
  Tensor own(DType dtype, const Shape& shape) {
    owned_.push_back(poisoned(backend_, dtype, shape));
    return owned_.back().view;
  }

  Backend& backend_;
  const FusedDecoderModel& model_;
  std::vector<DeviceTensor> owned_;
  Arena arena_;
  std::optional<LayerRunner> runner_;
  Tensor residual_, normed_;
};

}  // namespace tessera
