// A small model with random weights and pages, a decode step of which is computed by a
// FusedDecoder, by the operations one by one, and in double precision.
#pragma once

#include <vector>

#include "kernels/fused_decoder.h"
#include "kernels/fused_operations.h"
#include "tests/kernels/cuda/decode_step/decode_step_problem.h"
#include "tests/kernels/cuda/decode_step/layered_step.h"
#include "tests/kernels/for_each_backend.h"

namespace tessera {

class DecodeStepModel : public DecodeStepProblem {
 public:
  // As DecodeStepProblem, in the activation type.
  DecodeStepModel(Backend& backend, const DecodeStepSize& size,
                  const std::vector<int64_t>& contexts,
                  const std::vector<int64_t>& query_lengths = {})
      : DecodeStepProblem(backend.operations().activation_dtype(), size, contexts, query_lengths),
        backend_(backend) {
    model_.block = size_.block;
    for (const DecodeStepLayer& layer : layers_) {
      model_.layers.push_back(
          {.input_layernorm = floats_if_any(layer.input_layernorm),
           .qkv_proj = matrix(layer.qkv_proj, size.hidden_size),
           .qk_norm = floats_if_any(layer.qk_norm),
           .o_proj = matrix(layer.o_proj, size.query_size()),
           .post_attention_layernorm = floats_if_any(layer.post_attention_layernorm),
           .pre_feedforward_layernorm = floats_if_any(layer.pre_feedforward_layernorm),
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

  // Logits behind the tokens of the first `count` sequences.
  DeviceTensor fused(FusedDecoder& decoder, int64_t count) {
    const FusedDecodeBatch batch = inputs(count);
    const int64_t tokens = batch.token_ids.dim(0);
    DeviceTensor logits = poisoned(backend_, DType::kFloat32, {tokens, size_.vocab_size});
    EXPECT_TRUE(decoder.takes(tokens, batch.attention)) << tokens << " tokens";
    decoder.step(logits, batch);
    return logits;
  }

  // The same, one operation after the other.
  std::vector<double> unfused() {
    FusedOperations one_by_one(backend_.operations());
    const FusedDecodeBatch batch = inputs(num_sequences());
    const DeviceTensor logits =
        poisoned(backend_, DType::kFloat32, {num_tokens(), size_.vocab_size});
    LayeredStep(backend_, one_by_one, model_, batch).run(logits, batch);
    return to_host(backend_, logits);
  }

  // The rows that the step wrote, of all layers: keys, then values. NaN where there are none.
  std::vector<double> written_rows() const {
    std::vector<double> result;
    for (const KvPages& of_layer : model_.pages) {
      for (const Tensor& pages : {of_layer.keys, of_layer.values}) {
        // Without their scales: what is as near in e4m3 is as near.
        const std::vector<double> all = to_host(backend_, pages);
        for (int64_t i = 0; i < num_tokens(); ++i) {
          for (int64_t h = 0; h < size_.num_kv_heads; ++h) {
            const std::vector<double> row =
                rows_of(all, size_.head_dim,
                        page_row(sequences_[index_of(i)], contexts_[index_of(i)] - 1, h));
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

  // The step's inputs, without all but the first `count` sequences.
  FusedDecodeBatch inputs(int64_t count) {
    const int64_t num_tokens = query_starts_[index_of(count)];
    std::vector<int32_t> positions;
    std::vector<int32_t> slots;
    std::vector<int32_t> lengths;
    FusedDecodeBatch batch;
    for (int64_t i = 0; i < num_tokens; ++i) {
      const int64_t newest = contexts_[index_of(i)] - 1;
      positions.push_back(static_cast<int32_t>(newest));
      const int64_t page =
          block_tables_[index_of(sequences_[index_of(i)] * max_pages_ + newest / size_.page_size)];
      slots.push_back(static_cast<int32_t>(page * size_.page_size + newest % size_.page_size));
    }
    for (int64_t s = 0; s < count; ++s) {
      lengths.push_back(static_cast<int32_t>(sequence_contexts_[index_of(s)]));
      batch.attention.max_query_length =
          std::max<int64_t>(batch.attention.max_query_length,
                            query_starts_[index_of(s + 1)] - query_starts_[index_of(s)]);
    }
    batch.token_ids = integers(token_ids_, num_tokens);
    batch.positions = integers(positions, num_tokens);
    batch.kv_slots = integers(slots, num_tokens);
    batch.attention.query_starts = integers(query_starts_, count + 1);
    batch.attention.context_lengths = integers(lengths, count);
    batch.attention.block_tables =
        integers(block_tables_, count * max_pages_).reshape({count, max_pages_});
    batch.attention.num_sequences = count;
    batch.attention.num_decodes = count;
    batch.attention.max_decode_query_length = batch.attention.max_query_length;
    batch.attention.max_context_length = *std::ranges::max_element(lengths);
    return batch;
  }

  Backend& backend_;
  FusedDecoderModel model_;
  std::vector<DeviceTensor> owned_;
};

}  // namespace tessera
