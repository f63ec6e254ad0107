// A small model with random weights and pages, and what a decode step of it computes in double
// precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/block_sizes.h"
#include "kernels/sampling_params.h"
#include "kernels/tensor/shape.h"
#include "tests/kernels/e4m3.h"
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
  BlockSpec block = {};  // without `layers` all are as Llama's
  bool fp8_pages = false;

  int64_t query_size() const { return num_heads * head_dim; }
  int64_t kv_size() const { return num_kv_heads * head_dim; }
  int64_t qkv_size() const { return query_size() + 2 * kv_size(); }
};

inline constexpr float kEpsilon = 1e-5f;

// What a block has not is empty.
struct DecodeStepLayer {
  std::vector<double> input_layernorm, qkv_proj, qkv_bias, qk_norm, o_proj,
      post_attention_layernorm, pre_feedforward_layernorm, gate_up_proj, down_proj,
      post_feedforward_layernorm;
};

inline size_t index_of(int64_t index) { return static_cast<size_t>(index); }

// Rows [begin, begin + count) of a row-major matrix.
inline std::vector<double> rows_of(const std::vector<double>& matrix, int64_t row_size,
                                   int64_t begin, int64_t count = 1) {
  return {matrix.begin() + begin * row_size, matrix.begin() + (begin + count) * row_size};
}

class DecodeStepProblem {
 public:
  // Sequence s has contexts[s] tokens, the last query_lengths[s] of which, or one, are the step's.
  // Its pages are scattered, and what its context does not use yet is NaN. Weights are of `dtype`,
  // and so are pages without fp8_pages.
  DecodeStepProblem(DType dtype, const DecodeStepSize& size, const std::vector<int64_t>& contexts,
                    const std::vector<int64_t>& query_lengths = {})
      : dtype_(dtype), size_(size), sequence_contexts_(contexts), query_starts_{0} {
    for (size_t s = 0; s < contexts.size(); ++s) {
      const int64_t length = query_lengths.empty() ? 1 : query_lengths[s];
      for (int64_t i = 1; i <= length; ++i) {
        sequences_.push_back(static_cast<int64_t>(s));
        contexts_.push_back(contexts[s] - length + i);
      }
      query_starts_.push_back(static_cast<int32_t>(sequences_.size()));
    }
    if (size_.block.layers.empty()) size_.block.layers.resize(index_of(size.num_layers));
    make_weights();
    for (int64_t i = 0; i < 2 * size_.num_layers * size_.num_kv_heads; ++i) {
      kv_scales_.push_back(std::ldexp(1.0, static_cast<int>(i % 5) - 8));
    }
    make_pages();
  }

  int64_t num_sequences() const { return static_cast<int64_t>(sequence_contexts_.size()); }
  int64_t num_tokens() const { return static_cast<int64_t>(sequences_.size()); }

  // Logits behind all tokens in double precision; fills in their keys and values, for pages().
  std::vector<double> reference() {
    std::vector<double> logits;
    for (int64_t i = 0; i < num_tokens(); ++i) {
      std::vector<double> x =
          rows_of(embed_tokens_, size_.hidden_size, std::max(token_ids_[index_of(i)], 0));
      for (double& value : x) value *= size_.block.embedding_multiplier;
      for (int64_t l = 0; l < size_.num_layers; ++l) {
        const DecodeStepLayer& layer = layers_[index_of(l)];
        const std::vector<double> normed = normed_if_any(x, layer.input_layernorm);
        std::vector<double> qkv =
            reference_linear(normed, layer.qkv_proj, size_.hidden_size).values;
        for (size_t j = 0; j < layer.qkv_bias.size(); ++j) qkv[j] += layer.qkv_bias[j];
        if (size_.block.qk_norm == QkNorm::kWholeProjection) norm_whole(qkv, layer.qk_norm);
        const std::vector<double> attention = reference_attention(qkv, i, l);
        add_product(x, attention, layer.o_proj, layer.post_attention_layernorm);
        const std::vector<double> mid = normed_if_any(x, layer.pre_feedforward_layernorm);
        const std::vector<double> hidden =
            reference_activate_mul(
                reference_linear(mid, layer.gate_up_proj, size_.hidden_size).values,
                size_.intermediate_size, size_.block.activation)
                .values;
        add_product(x, hidden, layer.down_proj, layer.post_feedforward_layernorm);
      }
      const std::vector<double> normed = reference_rms_norm(x, norm_, kEpsilon).values;
      std::vector<double> row = reference_linear(normed, lm_head_, size_.hidden_size).values;
      for (double& logit : row) logit = capped(logit, size_.block.logit_softcap);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    return logits;
  }

 protected:
  Shape page_shape() const {
    return {num_pages_, size_.num_kv_heads, size_.page_size, size_.head_dim};
  }

  void make_weights() {
    const auto weight = [&](int64_t rows, int64_t columns) {
      return rounded(random_.normal(rows * columns, 1.0 / std::sqrt(static_cast<double>(columns))),
                     dtype_);
    };
    const auto vector = [&](int64_t size, double mean) {
      std::vector<double> values = random_.normal(size, 0.2);
      for (double& value : values) value += mean;
      return rounded(values, DType::kFloat32);
    };
    const auto norm = [&] { return vector(size_.hidden_size, 1.0); };
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      layers_.push_back({.input_layernorm = norm(),
                         .qkv_proj = weight(size_.qkv_size(), size_.hidden_size),
                         .qkv_bias = {},
                         .qk_norm = {},
                         .o_proj = weight(size_.hidden_size, size_.query_size()),
                         .post_attention_layernorm = {},
                         .pre_feedforward_layernorm = norm(),
                         .gate_up_proj = weight(2 * size_.intermediate_size, size_.hidden_size),
                         .down_proj = weight(size_.hidden_size, size_.intermediate_size),
                         .post_feedforward_layernorm = {}});
    }
    for (DecodeStepLayer& layer : layers_) {
      if (size_.block.biases.qkv) layer.qkv_bias = vector(size_.qkv_size(), 0.0);
      if (size_.block.qk_norm == QkNorm::kPerHead) layer.qk_norm = vector(2 * size_.head_dim, 1.0);
      if (size_.block.qk_norm == QkNorm::kWholeProjection) {
        layer.qk_norm = vector(size_.query_size() + size_.num_kv_heads * size_.head_dim, 1.0);
      }
      if (size_.block.norm_placement != NormPlacement::kPre) {
        layer.post_attention_layernorm = norm();
        layer.post_feedforward_layernorm = norm();
      }
      if (size_.block.norm_placement == NormPlacement::kPost) {
        layer.input_layernorm = layer.pre_feedforward_layernorm = {};
      }
    }
    embed_tokens_ = rounded(random_.normal(size_.vocab_size * size_.hidden_size), dtype_);
    norm_ = norm();
    lm_head_ = weight(size_.vocab_size, size_.hidden_size);
    for (const double speed : {1.0, 0.5}) {
      std::vector<double> table;
      for (int64_t j = 0; j < size_.head_dim / 2; ++j) {
        const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(size_.head_dim);
        table.push_back(speed * std::pow(10000.0, exponent));
      }
      for (int64_t j = 0; j < size_.head_dim / 2; ++j) {
        table.push_back(1.0 + 0.002 * static_cast<double>(j));  // amplitudes
      }
      rope_tables_.push_back(rounded(table, DType::kFloat32));
    }
    token_ids_ = random_.integers(num_tokens(), 0, size_.vocab_size - 1);
    if (token_ids_.size() > 1) token_ids_.back() = kNonFiniteLogits;  // stands for token 0
  }

  int64_t page_row(int64_t sequence, int64_t token, int64_t kv_head) const {
    const int64_t page = block_tables_[index_of(sequence * max_pages_ + token / size_.page_size)];
    return (page * size_.num_kv_heads + kv_head) * size_.page_size + token % size_.page_size;
  }

  // Of the keys of a KV head, or of its values: what elements of e4m3 are multiplied with.
  double kv_scale(int64_t layer, bool is_value, int64_t kv_head) const {
    return kv_scales_[index_of((2 * layer + (is_value ? 1 : 0)) * size_.num_kv_heads + kv_head)];
  }

  // A key or a value as the pages hold it.
  std::vector<double> stored(std::vector<double> row, int64_t layer, bool is_value,
                             int64_t kv_head) const {
    if (!size_.fp8_pages) return row;
    row = rounded(row, dtype_);
    for (double& value : row) value = rounded_e4m3(value, kv_scale(layer, is_value, kv_head));
    return row;
  }

  void make_pages() {
    max_pages_ = *std::ranges::max_element(sequence_contexts_) / size_.page_size + 2;
    num_pages_ = num_sequences() * max_pages_;
    block_tables_ = random_.permutation(num_pages_);
    const auto num_values = index_of(page_shape().num_elements());
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      for (auto* pool : {&keys_, &values_}) {
        pool->emplace_back(num_values, std::numeric_limits<double>::quiet_NaN());
        for (int64_t s = 0; s < num_sequences(); ++s) {
          const int64_t first_new = contexts_[index_of(query_starts_[index_of(s)])] - 1;
          for (int64_t t = 0; t < first_new; ++t) {
            for (int64_t h = 0; h < size_.num_kv_heads; ++h) {
              std::ranges::copy(
                  stored(rounded(random_.normal(size_.head_dim), dtype_), l, pool == &values_, h),
                  pool->back().begin() + page_row(s, t, h) * size_.head_dim);
            }
          }
        }
      }
    }
  }

  static double capped(double value, double softcap) {
    return softcap > 0.0 ? softcap * std::tanh(value / softcap) : value;
  }

  // The residual stream after a half of a block.
  void add_product(std::vector<double>& x, const std::vector<double>& in,
                   const std::vector<double>& weight, const std::vector<double>& norm) const {
    const auto columns = static_cast<int64_t>(in.size());
    std::vector<double> product = reference_linear(in, weight, columns).values;
    if (!norm.empty()) product = reference_rms_norm(product, norm, kEpsilon).values;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] += size_.block.residual_multiplier * product[i];
    }
  }

  static std::vector<double> normed_if_any(const std::vector<double>& x,
                                           const std::vector<double>& norm) {
    return norm.empty() ? x : reference_rms_norm(x, norm, kEpsilon).values;
  }

  // Normalises all queries at once, and all keys.
  void norm_whole(std::vector<double>& qkv, const std::vector<double>& weights) const {
    const int64_t query_size = size_.query_size();
    const int64_t key_size = size_.num_kv_heads * size_.head_dim;
    for (const auto& [begin, count] :
         {std::pair{int64_t{0}, query_size}, std::pair{query_size, key_size}}) {
      const std::vector<double> normed =
          reference_rms_norm(rows_of(qkv, 1, begin, count), rows_of(weights, 1, begin, count),
                             kEpsilon)
              .values;
      std::ranges::copy(normed, qkv.begin() + begin);
    }
  }

  // A query or key head as attention sees it, from where its norm's weights begin.
  std::vector<double> altered_head(std::vector<double> head, int64_t layer, int64_t norm_begin,
                                   int32_t position) const {
    const std::vector<double>& qk_norm = layers_[index_of(layer)].qk_norm;
    if (size_.block.qk_norm == QkNorm::kPerHead) {
      head = reference_rms_norm(head, rows_of(qk_norm, 1, norm_begin, size_.head_dim), kEpsilon)
                 .values;
    }
    const std::optional<int64_t> table = size_.block.layers[index_of(layer)].rope_table;
    return table ? reference_rope(head, position, rope_tables_[index_of(*table)]).values : head;
  }

  // Of a token of the step; also stores its key and value.
  std::vector<double> reference_attention(const std::vector<double>& qkv, int64_t token,
                                          int64_t layer) {
    const int64_t sequence = sequences_[index_of(token)];
    const int64_t context = contexts_[index_of(token)];
    const int64_t d = size_.head_dim;
    const auto position = static_cast<int32_t>(context - 1);
    for (int64_t h = 0; h < size_.num_kv_heads; ++h) {
      const std::vector<double> key =
          altered_head(rows_of(qkv, d, size_.num_heads + h), layer, d, position);
      const std::vector<double> value = rows_of(qkv, d, size_.num_heads + size_.num_kv_heads + h);
      const int64_t row = page_row(sequence, context - 1, h);
      std::ranges::copy(stored(key, layer, false, h), keys_[index_of(layer)].begin() + row * d);
      std::ranges::copy(stored(value, layer, true, h), values_[index_of(layer)].begin() + row * d);
    }
    const int64_t sliding_window = size_.block.layers[index_of(layer)].sliding_window;
    const int64_t window = sliding_window == 0 ? context : sliding_window;
    const double scale = attention_scale(size_.block, d);
    std::vector<double> out;
    for (int64_t h = 0; h < size_.num_heads; ++h) {
      const std::vector<double> query = altered_head(rows_of(qkv, d, h), layer, 0, position);
      const int64_t kv_head = h / (size_.num_heads / size_.num_kv_heads);
      std::vector<double> scores;
      for (int64_t t = std::max<int64_t>(0, context - window); t < context; ++t) {
        const double* key = &keys_[index_of(layer)][index_of(page_row(sequence, t, kv_head) * d)];
        double score = 0.0;
        for (int64_t j = 0; j < d; ++j) score += query[index_of(j)] * key[j];
        scores.push_back(capped(score * scale, size_.block.attention_softcap));
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

  DType dtype_;
  DecodeStepSize size_;
  std::vector<int64_t> sequence_contexts_;
  std::vector<int32_t> query_starts_;  // [num_sequences + 1]
  std::vector<int64_t> sequences_;     // of each token of the step
  std::vector<int64_t> contexts_;      // tokens that each token of the step sees, itself included
  RandomValues random_{7};
  std::vector<DecodeStepLayer> layers_;
  std::vector<double> embed_tokens_, norm_, lm_head_;
  std::vector<std::vector<double>> rope_tables_;
  std::vector<int32_t> token_ids_, block_tables_;
  std::vector<double> kv_scales_;                   // [num_layers, 2, num_kv_heads], powers of two
  std::vector<std::vector<double>> keys_, values_;  // of each layer, as the pages hold them
  int64_t max_pages_ = 0, num_pages_ = 0;
};

}  // namespace tessera
