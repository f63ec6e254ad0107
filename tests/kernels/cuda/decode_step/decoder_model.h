// A small model with random weights and pages, a decode step of which is computed by a
// FusedDecoder, by the operations one by one, and in double precision.
#pragma once

#include <vector>

#include "kernels/backend_limits.h"
#include "kernels/fused_decoder.h"
#include "kernels/fused_operations.h"
#include "kernels/layer_runner.h"
#include "kernels/tensor/buffer.h"
#include "tests/kernels/cuda/decode_step/decode_step_problem.h"
#include "tests/kernels/for_each_backend.h"

namespace tessera {

class DecodeStepModel : public DecodeStepProblem {
 public:
  // As DecodeStepProblem, in the activation type.
  DecodeStepModel(Backend& backend, const DecodeStepSize& size,
                  const std::vector<int64_t>& contexts)
      : DecodeStepProblem(backend.operations().activation_dtype(), size, contexts),
        backend_(backend) {
    model_.block = size_.block;
    for (const DecodeStepLayer& layer : layers_) {
      model_.layers.push_back(
          {.input_layernorm = floats(layer.input_layernorm),
           .qkv_proj = matrix(layer.qkv_proj, size.hidden_size),
           .qk_norm = floats_if_any(layer.qk_norm),
           .o_proj = matrix(layer.o_proj, size.query_size()),
           .post_attention_layernorm = floats_if_any(layer.post_attention_layernorm),
           .pre_feedforward_layernorm = floats(layer.pre_feedforward_layernorm),
           .gate_up_proj = matrix(layer.gate_up_proj, size.hidden_size),
           .down_proj = matrix(layer.down_proj, size.intermediate_size),
           .post_feedforward_layernorm = floats_if_any(layer.post_feedforward_layernorm)});
      model_.layers.back().qkv_proj.bias = floats_if_any(layer.qkv_bias);
    }
    make_page_tensors();
    model_.embed_tokens = matrix(embed_tokens_, size.hidden_size);
    model_.norm = floats(norm_);
    model_.lm_head = matrix(lm_head_, size.hidden_size);
    for (const std::vector<double>& table : rope_tables_) {
      model_.rope_tables.push_back(floats(table).reshape({2, size.head_dim / 2}));
    }
    model_.sizes = {.hidden_size = size.hidden_size,
                    .intermediate_size = size.intermediate_size,
                    .num_heads = size.num_heads,
                    .num_kv_heads = size.num_kv_heads,
                    .head_dim = size.head_dim,
                    .rms_norm_eps = kEpsilon};
    upload_pages();
  }

  const FusedDecoderModel& model() const { return model_; }

  // Puts the pages back to what they were before the step.
  void upload_pages() {
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      const KvPages& pages = model_.pages[index_of(l)];
      upload(pages.keys, keys_[index_of(l)], l, false);
      upload(pages.values, values_[index_of(l)], l, true);
    }
  }

  // Logits of the first `count` sequences.
  DeviceTensor fused(FusedDecoder& decoder, int64_t count) {
    DeviceTensor logits = poisoned(backend_, DType::kFloat32, {count, size_.vocab_size});
    decoder.step(logits, inputs(count));
    return logits;
  }

  // The same, one operation after the other.
  std::vector<double> unfused() {
    Operations& operations = backend_.operations();
    FusedOperations one_by_one(operations);
    const FusedDecodeBatch batch = inputs(num_sequences());
    const int64_t tokens = num_sequences();
    const BackendLimits limits{.max_tokens = tokens,
                               .max_sequences = tokens,
                               .max_context_length = *std::ranges::max_element(contexts_),
                               .num_heads = size_.num_heads,
                               .num_kv_heads = size_.num_kv_heads,
                               .head_dim = size_.head_dim};
    Arena measure;
    LayerRunner(measure, model_.block, model_.sizes, limits, one_by_one);
    const DeviceTensor scratch =
        poisoned(backend_, DType::kFloat32, {static_cast<int64_t>(measure.used_bytes() / 4)});
    Arena arena(scratch.buffer);
    const LayerRunner runner(arena, model_.block, model_.sizes, limits, one_by_one);
    const LayerStep step{
        .residual = own(poisoned(backend_, DType::kFloat32, {tokens, size_.hidden_size})),
        .positions = batch.positions,
        .kv_slots = batch.kv_slots,
        .attention = batch.attention,
        .rope_tables = model_.rope_tables};
    operations.embed(step.residual, model_.embed_tokens, batch.token_ids,
                     static_cast<float>(model_.block.embedding_multiplier));
    runner.begin(step, model_.layers.front());
    for (size_t l = 0; l < model_.layers.size(); ++l) {
      const LayerTensors layer{
          .index = static_cast<int64_t>(l), .weights = model_.layers[l], .pages = model_.pages[l]};
      const bool is_last = l + 1 == model_.layers.size();
      runner.attention_block(step, layer);
      runner.feed_forward_block(step, layer, is_last ? nullptr : &model_.layers[l + 1]);
    }
    const Tensor normed = own(poisoned(backend_, activation(), {tokens, size_.hidden_size}));
    const Tensor logits = own(poisoned(backend_, DType::kFloat32, {tokens, size_.vocab_size}));
    operations.rms_norm(normed, step.residual, model_.norm, kEpsilon);
    operations.linear(logits, normed, model_.lm_head);
    if (model_.block.logit_softcap > 0.0) {
      operations.softcap(logits, static_cast<float>(model_.block.logit_softcap));
    }
    return to_host(backend_, logits);
  }

  // The rows that the step wrote, of all layers: keys, then values. NaN where there are none.
  std::vector<double> written_rows() const {
    std::vector<double> result;
    for (const KvPages& of_layer : model_.pages) {
      for (const Tensor& pages : {of_layer.keys, of_layer.values}) {
        // Without their scales: what is as near in e4m3 is as near.
        const std::vector<double> all = to_host(backend_, pages);
        for (int64_t s = 0; s < num_sequences(); ++s) {
          for (int64_t h = 0; h < size_.num_kv_heads; ++h) {
            const std::vector<double> row =
                rows_of(all, size_.head_dim, page_row(s, contexts_[index_of(s)] - 1, h));
            result.insert(result.end(), row.begin(), row.end());
          }
        }
      }
    }
    return result;
  }

 private:
  DType activation() const { return backend_.operations().activation_dtype(); }
  Tensor own(DeviceTensor tensor) {
    owned_.push_back(std::move(tensor));
    return owned_.back().view;
  }
  Tensor floats(const std::vector<double>& values) {
    return own(to_device(backend_, values, DType::kFloat32, {static_cast<int64_t>(values.size())}));
  }
  Tensor floats_if_any(const std::vector<double>& values) {
    return values.empty() ? Tensor{} : floats(values);
  }
  Tensor matrix(const std::vector<double>& values, int64_t columns) {
    return own(to_device(backend_, values, activation(),
                         {static_cast<int64_t>(values.size()) / columns, columns}));
  }
  Tensor integers(const std::vector<int32_t>& values, int64_t count) {
    return own(to_device(backend_, {values.begin(), values.begin() + count}, Shape{count}));
  }
  // The cache's own layout: the scales of all layers lie behind each other.
  void make_page_tensors() {
    const int64_t heads = size_.num_kv_heads;
    Tensor scales = floats(kv_scales_).reshape({2 * size_.num_layers, heads});
    const DType dtype = size_.fp8_pages ? DType::kFloat8E4M3 : activation();
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      KvPages pages{.keys = own(poisoned(backend_, dtype, page_shape())),
                    .values = own(poisoned(backend_, dtype, page_shape()))};
      if (size_.fp8_pages) {
        pages.key_scales = scales.slice(2 * l, 2 * l + 1).reshape({heads});
        pages.value_scales = scales.slice(2 * l + 1, 2 * l + 2).reshape({heads});
      }
      model_.pages.push_back(pages);
    }
  }

  // Keys or values of a layer to where the pages are.
  void upload(const Tensor& pages, const std::vector<double>& values, int64_t layer,
              bool is_value) {
    Tensor source{.shape = pages.shape};
    std::vector<float> floats(values.begin(), values.end());
    std::vector<uint8_t> codes;
    if (pages.dtype == DType::kFloat8E4M3) {
      const int64_t head_elements = size_.page_size * size_.head_dim;
      for (int64_t i = 0; i < pages.num_elements(); ++i) {
        const int64_t kv_head = i / head_elements % size_.num_kv_heads;
        codes.push_back(nearest_e4m3(values[index_of(i)] / kv_scale(layer, is_value, kv_head)));
      }
      source.dtype = pages.dtype;
    }
    source.data = codes.empty() ? static_cast<void*>(floats.data()) : codes.data();
    backend_.device().upload(pages, source);
  }

  FusedDecodeBatch inputs(int64_t count) {
    std::vector<int32_t> positions;
    std::vector<int32_t> slots;
    std::vector<int32_t> lengths;
    std::vector<int32_t> starts{0};
    for (int64_t s = 0; s < count; ++s) {
      const int64_t newest = contexts_[index_of(s)] - 1;
      positions.push_back(static_cast<int32_t>(newest));
      const int64_t page = block_tables_[index_of(s * max_pages_ + newest / size_.page_size)];
      slots.push_back(static_cast<int32_t>(page * size_.page_size + newest % size_.page_size));
      lengths.push_back(static_cast<int32_t>(newest + 1));
      starts.push_back(static_cast<int32_t>(s + 1));
    }
    FusedDecodeBatch batch;
    batch.token_ids = integers(token_ids_, count);
    batch.positions = integers(positions, count);
    batch.kv_slots = integers(slots, count);
    batch.attention.query_starts = integers(starts, count + 1);
    batch.attention.context_lengths = integers(lengths, count);
    batch.attention.block_tables =
        integers(block_tables_, count * max_pages_).reshape({count, max_pages_});
    batch.attention.num_sequences = count;
    batch.attention.num_decodes = count;
    batch.attention.max_query_length = 1;
    batch.attention.max_context_length = *std::ranges::max_element(lengths);
    return batch;
  }

  Backend& backend_;
  FusedDecoderModel model_;
  std::vector<DeviceTensor> owned_;
};

}  // namespace tessera
