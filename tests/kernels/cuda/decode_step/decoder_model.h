// A small model with random weights and pages, a decode step of which is computed by a
// FusedDecoder, by the operations one by one, and in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/fused_decoder.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {

struct DecodeStepSize {
  int64_t hidden_size = 256;
  int64_t intermediate_size = 256;
  int64_t vocab_size = 1003;
  int64_t num_heads = 8;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 64;
  int64_t page_size = 64;
  int64_t num_layers = 3;
  int64_t sliding_window = 0;
  double attention_scale = 0.0;  // 0: 1 / sqrt(head_dim)

  int64_t query_size() const { return num_heads * head_dim; }
  int64_t kv_size() const { return num_kv_heads * head_dim; }
  int64_t qkv_size() const { return query_size() + 2 * kv_size(); }
  float scale() const {
    return tessera::attention_scale({.attention_scale = attention_scale}, head_dim);
  }
};

inline constexpr float kEpsilon = 1e-5f;

struct DecodeStepLayer {
  std::vector<double> input_layernorm, qkv_proj, o_proj, pre_feedforward_layernorm, gate_up_proj,
      down_proj;
};

inline size_t index_of(int64_t index) { return static_cast<size_t>(index); }

// Rows [begin, begin + count) of a row-major matrix.
inline std::vector<double> rows_of(const std::vector<double>& matrix, int64_t row_size,
                                   int64_t begin, int64_t count = 1) {
  return {matrix.begin() + begin * row_size, matrix.begin() + (begin + count) * row_size};
}

class DecodeStepModel {
 public:
  // Sequence s has contexts[s] tokens, its newest one included. Its pages are scattered, and what
  // its context does not use is NaN.
  DecodeStepModel(Backend& backend, const DecodeStepSize& size,
                  const std::vector<int64_t>& contexts)
      : backend_(backend), size_(size), contexts_(contexts) {
    make_weights();
    make_pages();
    for (const DecodeStepLayer& layer : layers_) {
      model_.layers.push_back({.input_layernorm = floats(layer.input_layernorm),
                               .qkv_proj = matrix(layer.qkv_proj, size.hidden_size),
                               .o_proj = matrix(layer.o_proj, size.query_size()),
                               .pre_feedforward_layernorm = floats(layer.pre_feedforward_layernorm),
                               .gate_up_proj = matrix(layer.gate_up_proj, size.hidden_size),
                               .down_proj = matrix(layer.down_proj, size.intermediate_size)});
      model_.pages.emplace_back();
      model_.block.layers.push_back({.sliding_window = size.sliding_window});
    }
    model_.embed_tokens = matrix(embed_tokens_, size.hidden_size);
    model_.norm = floats(norm_);
    model_.lm_head = matrix(lm_head_, size.hidden_size);
    model_.block.attention_scale = size.attention_scale;
    model_.rope_tables = {floats(rope_table_).reshape({2, size.head_dim / 2})};
    model_.sizes = {.hidden_size = size.hidden_size,
                    .intermediate_size = size.intermediate_size,
                    .num_heads = size.num_heads,
                    .num_kv_heads = size.num_kv_heads,
                    .head_dim = size.head_dim,
                    .rms_norm_eps = kEpsilon};
    upload_pages();
  }

  const FusedDecoderModel& model() const { return model_; }
  int64_t num_sequences() const { return static_cast<int64_t>(contexts_.size()); }

  // Puts the pages back to what they were before the step.
  void upload_pages() {
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      KvPages& pages = model_.pages[index_of(l)];
      if (pages.keys.empty()) {
        pages = {own(to_device(backend_, keys_[index_of(l)], activation(), page_shape())),
                 own(to_device(backend_, values_[index_of(l)], activation(), page_shape()))};
      } else {
        const DeviceTensor keys =
            to_device(backend_, keys_[index_of(l)], activation(), page_shape());
        const DeviceTensor values =
            to_device(backend_, values_[index_of(l)], activation(), page_shape());
        copy(pages.keys, keys);
        copy(pages.values, values);
      }
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
    const FusedDecodeBatch batch = inputs(num_sequences());
    const int64_t tokens = num_sequences();
    const auto scratch = [&](DType dtype, const Shape& shape) {
      return own(poisoned(backend_, dtype, shape));
    };
    const Tensor residual = scratch(DType::kFloat32, {tokens, size_.hidden_size});
    const Tensor normed = scratch(activation(), {tokens, size_.hidden_size});
    const Tensor qkv = scratch(activation(), {tokens, size_.qkv_size()});
    const Tensor query = scratch(activation(), {tokens, size_.num_heads, size_.head_dim});
    const Tensor attention = scratch(activation(), {tokens, size_.num_heads, size_.head_dim});
    const Tensor gate_up = scratch(activation(), {tokens, 2 * size_.intermediate_size});
    const Tensor hidden = scratch(activation(), {tokens, size_.intermediate_size});
    const Tensor logits = scratch(DType::kFloat32, {tokens, size_.vocab_size});
    const int64_t workspace_bytes = static_cast<int64_t>(operations.attention_workspace_bytes(
        {.max_tokens = tokens,
         .max_sequences = tokens,
         .max_context_length = *std::ranges::max_element(contexts_),
         .num_heads = size_.num_heads,
         .num_kv_heads = size_.num_kv_heads,
         .head_dim = size_.head_dim}));
    const Tensor workspace = scratch(DType::kFloat32, {workspace_bytes / 4 + 1});
    operations.embed(residual, model_.embed_tokens, batch.token_ids);
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      const LayerWeights& layer = model_.layers[index_of(l)];
      const KvPages& pages = model_.pages[index_of(l)];
      operations.rms_norm(normed, residual, layer.input_layernorm, kEpsilon);
      operations.linear(qkv, normed, layer.qkv_proj);
      operations.rope_store_kv(
          {query, pages, qkv, batch.positions, batch.kv_slots, model_.rope_tables.front()});
      operations.attention(attention, {.query = query,
                                       .pages = pages,
                                       .batch = batch.attention,
                                       .scale = size_.scale(),
                                       .sliding_window = size_.sliding_window,
                                       .workspace = workspace});
      operations.linear_add(residual, attention.reshape({tokens, size_.query_size()}),
                            layer.o_proj);
      operations.rms_norm(normed, residual, layer.pre_feedforward_layernorm, kEpsilon);
      operations.linear(gate_up, normed, layer.gate_up_proj);
      operations.activate_mul(hidden, gate_up, Activation::kSilu);
      operations.linear_add(residual, hidden, layer.down_proj);
    }
    operations.rms_norm(normed, residual, model_.norm, kEpsilon);
    operations.linear(logits, normed, model_.lm_head);
    return to_host(backend_, logits);
  }

  // The same in double precision; fills in the newest keys and values, for pages().
  std::vector<double> reference() {
    std::vector<double> logits;
    for (int64_t s = 0; s < num_sequences(); ++s) {
      std::vector<double> x =
          rows_of(embed_tokens_, size_.hidden_size, std::max(token_ids_[index_of(s)], 0));
      for (int64_t l = 0; l < size_.num_layers; ++l) {
        const DecodeStepLayer& layer = layers_[index_of(l)];
        const std::vector<double> normed =
            reference_rms_norm(x, layer.input_layernorm, kEpsilon).values;
        const std::vector<double> qkv =
            reference_linear(normed, layer.qkv_proj, size_.hidden_size).values;
        const std::vector<double> attention = reference_attention(qkv, s, l);
        x = reference_linear(attention, layer.o_proj, size_.query_size(), x).values;
        const std::vector<double> mid =
            reference_rms_norm(x, layer.pre_feedforward_layernorm, kEpsilon).values;
        const std::vector<double> hidden =
            reference_activate_mul(
                reference_linear(mid, layer.gate_up_proj, size_.hidden_size).values,
                size_.intermediate_size)
                .values;
        x = reference_linear(hidden, layer.down_proj, size_.intermediate_size, x).values;
      }
      const std::vector<double> normed = reference_rms_norm(x, norm_, kEpsilon).values;
      const std::vector<double> row = reference_linear(normed, lm_head_, size_.hidden_size).values;
      logits.insert(logits.end(), row.begin(), row.end());
    }
    return logits;
  }

  // The rows that the step wrote, of all layers: keys, then values. NaN where there are none.
  std::vector<double> written_rows() const {
    std::vector<double> result;
    for (const KvPages& of_layer : model_.pages) {
      for (const Tensor& pages : {of_layer.keys, of_layer.values}) {
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
  Tensor matrix(const std::vector<double>& values, int64_t columns) {
    return own(to_device(backend_, values, activation(),
                         {static_cast<int64_t>(values.size()) / columns, columns}));
  }
  Tensor integers(const std::vector<int32_t>& values, int64_t count) {
    return own(to_device(backend_, {values.begin(), values.begin() + count}, Shape{count}));
  }
  // Both on the device.
  void copy(const Tensor& to, const Tensor& from) {
    const int64_t rows = size_.num_kv_heads * size_.page_size * num_pages_;
    std::vector<float> host(index_of(from.num_elements()));
    const std::vector<double> values = to_host(backend_, from);
    std::ranges::transform(values, host.begin(), [](double v) { return static_cast<float>(v); });
    Tensor source;
    source.data = host.data();
    source.shape = to.shape;
    backend_.device().upload(to, source);
    ASSERT_EQ(rows * size_.head_dim, from.num_elements());
  }

  Shape page_shape() const {
    return {num_pages_, size_.num_kv_heads, size_.page_size, size_.head_dim};
  }

  void make_weights() {
    const auto weight = [&](int64_t rows, int64_t columns) {
      return rounded(random_.normal(rows * columns, 1.0 / std::sqrt(static_cast<double>(columns))),
                     activation());
    };
    const auto norm = [&] {
      std::vector<double> values = random_.normal(size_.hidden_size, 0.2);
      for (double& value : values) value += 1.0;
      return rounded(values, DType::kFloat32);
    };
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      layers_.push_back({.input_layernorm = norm(),
                         .qkv_proj = weight(size_.qkv_size(), size_.hidden_size),
                         .o_proj = weight(size_.hidden_size, size_.query_size()),
                         .pre_feedforward_layernorm = norm(),
                         .gate_up_proj = weight(2 * size_.intermediate_size, size_.hidden_size),
                         .down_proj = weight(size_.hidden_size, size_.intermediate_size)});
    }
    embed_tokens_ = rounded(random_.normal(size_.vocab_size * size_.hidden_size), activation());
    norm_ = norm();
    lm_head_ = weight(size_.vocab_size, size_.hidden_size);
    for (int64_t j = 0; j < size_.head_dim / 2; ++j) {
      rope_table_.push_back(
          std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(size_.head_dim)));
    }
    for (int64_t j = 0; j < size_.head_dim / 2; ++j) {
      rope_table_.push_back(1.0 + 0.002 * static_cast<double>(j));
    }
    rope_table_ = rounded(rope_table_, DType::kFloat32);
    token_ids_ = random_.integers(num_sequences(), 0, size_.vocab_size - 1);
    if (token_ids_.size() > 1) token_ids_.back() = kNonFiniteLogits;  // stands for token 0
  }

  int64_t page_row(int64_t sequence, int64_t token, int64_t kv_head) const {
    const int64_t page = block_tables_[index_of(sequence * max_pages_ + token / size_.page_size)];
    return (page * size_.num_kv_heads + kv_head) * size_.page_size + token % size_.page_size;
  }

  void make_pages() {
    max_pages_ = *std::ranges::max_element(contexts_) / size_.page_size + 2;
    num_pages_ = num_sequences() * max_pages_;
    block_tables_ = random_.permutation(num_pages_);
    const auto num_values = index_of(page_shape().num_elements());
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      for (auto* pool : {&keys_, &values_}) {
        pool->emplace_back(num_values, std::numeric_limits<double>::quiet_NaN());
        for (int64_t s = 0; s < num_sequences(); ++s) {
          for (int64_t t = 0; t + 1 < contexts_[index_of(s)]; ++t) {
            for (int64_t h = 0; h < size_.num_kv_heads; ++h) {
              std::ranges::copy(rounded(random_.normal(size_.head_dim), activation()),
                                pool->back().begin() + page_row(s, t, h) * size_.head_dim);
            }
          }
        }
      }
    }
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

  // Also stores the newest key and value.
  std::vector<double> reference_attention(const std::vector<double>& qkv, int64_t sequence,
                                          int64_t layer) {
    const int64_t context = contexts_[index_of(sequence)];
    const int64_t d = size_.head_dim;
    const auto position = static_cast<int32_t>(context - 1);
    for (int64_t h = 0; h < size_.num_kv_heads; ++h) {
      const std::vector<double> key =
          reference_rope(rows_of(qkv, d, size_.num_heads + h), position, rope_table_).values;
      const std::vector<double> value = rows_of(qkv, d, size_.num_heads + size_.num_kv_heads + h);
      const int64_t row = page_row(sequence, context - 1, h);
      std::ranges::copy(key, keys_[index_of(layer)].begin() + row * d);
      std::ranges::copy(value, values_[index_of(layer)].begin() + row * d);
    }
    std::vector<double> out;
    for (int64_t h = 0; h < size_.num_heads; ++h) {
      const std::vector<double> query =
          reference_rope(rows_of(qkv, d, h), position, rope_table_).values;
      const int64_t kv_head = h / (size_.num_heads / size_.num_kv_heads);
      const int64_t window = size_.sliding_window == 0 ? context : size_.sliding_window;
      std::vector<double> scores;
      for (int64_t t = std::max<int64_t>(0, context - window); t < context; ++t) {
        const double* key = &keys_[index_of(layer)][index_of(page_row(sequence, t, kv_head) * d)];
        double score = 0.0;
        for (int64_t j = 0; j < d; ++j) score += query[index_of(j)] * key[j];
        scores.push_back(score * size_.scale());
      }
      const double largest = *std::ranges::max_element(scores);
      std::vector<double> sums(index_of(d), 0.0);
      double total = 0.0;
      for (size_t i = 0; i < scores.size(); ++i) {
        const int64_t t = context - static_cast<int64_t>(scores.size() - i);
        const double weight = std::exp(scores[i] - largest);
        const double* value =
            &values_[index_of(layer)][index_of(page_row(sequence, t, kv_head) * d)];
        for (int64_t j = 0; j < d; ++j) sums[index_of(j)] += weight * value[j];
        total += weight;
      }
      for (const double sum : sums) out.push_back(sum / total);
    }
    return out;
  }

  Backend& backend_;
  DecodeStepSize size_;
  std::vector<int64_t> contexts_;
  RandomValues random_{7};
  std::vector<DecodeStepLayer> layers_;
  std::vector<double> embed_tokens_, norm_, lm_head_, rope_table_;
  std::vector<int32_t> token_ids_, block_tables_;
  std::vector<std::vector<double>> keys_, values_;  // of each layer, as the pages hold them
  int64_t max_pages_ = 0, num_pages_ = 0;
  FusedDecoderModel model_;
  std::vector<DeviceTensor> owned_;
};

}  // namespace tessera
