// A whole decode step in one kernel, against double precision and against the operations that it
// replaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>

#include "kernels/fused_decoder.h"
#include "tests/kernels/deadline.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

struct ModelSize {
  int64_t hidden_size = 256;
  int64_t intermediate_size = 256;
  int64_t vocab_size = 1003;
  int64_t num_heads = 8;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 64;
  int64_t page_size = 64;
  int64_t num_layers = 3;
  int64_t sliding_window = 0;

  int64_t query_size() const { return num_heads * head_dim; }
  int64_t kv_size() const { return num_kv_heads * head_dim; }
  int64_t qkv_size() const { return query_size() + 2 * kv_size(); }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }
};

constexpr float kEpsilon = 1e-5f;
using Values = std::vector<double>;

struct LayerValues {
  Values input_layernorm, qkv_proj, o_proj, post_attention_layernorm, gate_up_proj, down_proj;
};

size_t index_of(int64_t index) { return static_cast<size_t>(index); }

// Rows [begin, begin + count) of a row-major matrix.
Values rows_of(const Values& matrix, int64_t row_size, int64_t begin, int64_t count = 1) {
  return {matrix.begin() + begin * row_size, matrix.begin() + (begin + count) * row_size};
}

class TestModel {
 public:
  // Sequence s has contexts[s] tokens, its newest one included. Its pages are scattered, and what
  // its context does not use is NaN.
  TestModel(Backend& backend, const ModelSize& size, const std::vector<int64_t>& contexts)
      : backend_(backend), size_(size), contexts_(contexts) {
    make_weights();
    make_pages();
    for (const LayerValues& layer : layers_) {
      model_.layers.push_back({.input_layernorm = floats(layer.input_layernorm),
                               .qkv_proj = matrix(layer.qkv_proj, size.hidden_size),
                               .o_proj = matrix(layer.o_proj, size.query_size()),
                               .post_attention_layernorm = floats(layer.post_attention_layernorm),
                               .gate_up_proj = matrix(layer.gate_up_proj, size.hidden_size),
                               .down_proj = matrix(layer.down_proj, size.intermediate_size),
                               .pages = {}});
    }
    model_.embed_tokens = matrix(embed_tokens_, size.hidden_size);
    model_.norm = floats(norm_);
    model_.lm_head = matrix(lm_head_, size.hidden_size);
    model_.inverse_frequencies = floats(inverse_frequencies_);
    model_.num_heads = size.num_heads;
    model_.rms_norm_eps = kEpsilon;
    model_.attention_scale = size.scale();
    model_.sliding_window = size.sliding_window;
    upload_pages();
  }

  const FusedDecoderModel& model() const { return model_; }
  int64_t num_sequences() const { return static_cast<int64_t>(contexts_.size()); }

  // Puts the pages back to what they were before the step.
  void upload_pages() {
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      KvPages& pages = model_.layers[index_of(l)].pages;
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
  Values unfused() {
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
    for (const FusedDecoderLayer& layer : model_.layers) {
      operations.rms_norm(normed, residual, layer.input_layernorm, kEpsilon);
      operations.linear(qkv, normed, layer.qkv_proj);
      operations.rope_store_kv(
          {query, layer.pages, qkv, batch.positions, batch.kv_slots, model_.inverse_frequencies});
      operations.attention(attention, {.query = query,
                                       .pages = layer.pages,
                                       .batch = batch.attention,
                                       .scale = size_.scale(),
                                       .sliding_window = size_.sliding_window,
                                       .workspace = workspace});
      operations.linear_add(residual, attention.reshape({tokens, size_.query_size()}),
                            layer.o_proj);
      operations.rms_norm(normed, residual, layer.post_attention_layernorm, kEpsilon);
      operations.linear(gate_up, normed, layer.gate_up_proj);
      operations.silu_mul(hidden, gate_up);
      operations.linear_add(residual, hidden, layer.down_proj);
    }
    operations.rms_norm(normed, residual, model_.norm, kEpsilon);
    operations.linear(logits, normed, model_.lm_head);
    return to_host(backend_, logits);
  }

  // The same in double precision; fills in the newest keys and values, for pages().
  Values reference() {
    Values logits;
    for (int64_t s = 0; s < num_sequences(); ++s) {
      Values x = rows_of(embed_tokens_, size_.hidden_size, std::max(token_ids_[index_of(s)], 0));
      for (int64_t l = 0; l < size_.num_layers; ++l) {
        const LayerValues& layer = layers_[index_of(l)];
        const Values normed = reference_rms_norm(x, layer.input_layernorm, kEpsilon).values;
        const Values qkv = reference_linear(normed, layer.qkv_proj, size_.hidden_size).values;
        const Values attention = reference_attention(qkv, s, l);
        x = reference_linear(attention, layer.o_proj, size_.query_size(), x).values;
        const Values mid = reference_rms_norm(x, layer.post_attention_layernorm, kEpsilon).values;
        const Values hidden =
            reference_silu_mul(reference_linear(mid, layer.gate_up_proj, size_.hidden_size).values,
                               size_.intermediate_size)
                .values;
        x = reference_linear(hidden, layer.down_proj, size_.intermediate_size, x).values;
      }
      const Values normed = reference_rms_norm(x, norm_, kEpsilon).values;
      const Values row = reference_linear(normed, lm_head_, size_.hidden_size).values;
      logits.insert(logits.end(), row.begin(), row.end());
    }
    return logits;
  }

  // The rows that the step wrote, of all layers: keys, then values. NaN where there are none.
  Values written_rows() const {
    Values result;
    for (const FusedDecoderLayer& layer : model_.layers) {
      for (const Tensor& pages : {layer.pages.keys, layer.pages.values}) {
        const Values all = to_host(backend_, pages);
        for (int64_t s = 0; s < num_sequences(); ++s) {
          for (int64_t h = 0; h < size_.num_kv_heads; ++h) {
            const Values row =
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
  Tensor floats(const Values& values) {
    return own(to_device(backend_, values, DType::kFloat32, {static_cast<int64_t>(values.size())}));
  }
  Tensor matrix(const Values& values, int64_t columns) {
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
    const Values values = to_host(backend_, from);
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
      Values values = random_.normal(size_.hidden_size, 0.2);
      for (double& value : values) value += 1.0;
      return rounded(values, DType::kFloat32);
    };
    for (int64_t l = 0; l < size_.num_layers; ++l) {
      layers_.push_back({.input_layernorm = norm(),
                         .qkv_proj = weight(size_.qkv_size(), size_.hidden_size),
                         .o_proj = weight(size_.hidden_size, size_.query_size()),
                         .post_attention_layernorm = norm(),
                         .gate_up_proj = weight(2 * size_.intermediate_size, size_.hidden_size),
                         .down_proj = weight(size_.hidden_size, size_.intermediate_size)});
    }
    embed_tokens_ = rounded(random_.normal(size_.vocab_size * size_.hidden_size), activation());
    norm_ = norm();
    lm_head_ = weight(size_.vocab_size, size_.hidden_size);
    for (int64_t j = 0; j < size_.head_dim / 2; ++j) {
      inverse_frequencies_.push_back(
          std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(size_.head_dim)));
    }
    inverse_frequencies_ = rounded(inverse_frequencies_, DType::kFloat32);
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
  Values reference_attention(const Values& qkv, int64_t sequence, int64_t layer) {
    const int64_t context = contexts_[index_of(sequence)];
    const int64_t d = size_.head_dim;
    const auto position = static_cast<int32_t>(context - 1);
    for (int64_t h = 0; h < size_.num_kv_heads; ++h) {
      const Values key =
          reference_rope(rows_of(qkv, d, size_.num_heads + h), position, inverse_frequencies_)
              .values;
      const Values value = rows_of(qkv, d, size_.num_heads + size_.num_kv_heads + h);
      const int64_t row = page_row(sequence, context - 1, h);
      std::ranges::copy(key, keys_[index_of(layer)].begin() + row * d);
      std::ranges::copy(value, values_[index_of(layer)].begin() + row * d);
    }
    Values out;
    for (int64_t h = 0; h < size_.num_heads; ++h) {
      const Values query =
          reference_rope(rows_of(qkv, d, h), position, inverse_frequencies_).values;
      const int64_t kv_head = h / (size_.num_heads / size_.num_kv_heads);
      const int64_t window = size_.sliding_window == 0 ? context : size_.sliding_window;
      Values scores;
      for (int64_t t = std::max<int64_t>(0, context - window); t < context; ++t) {
        const double* key = &keys_[index_of(layer)][index_of(page_row(sequence, t, kv_head) * d)];
        double score = 0.0;
        for (int64_t j = 0; j < d; ++j) score += query[index_of(j)] * key[j];
        scores.push_back(score * size_.scale());
      }
      const double largest = *std::ranges::max_element(scores);
      Values sums(index_of(d), 0.0);
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
  ModelSize size_;
  std::vector<int64_t> contexts_;
  RandomValues random_{7};
  std::vector<LayerValues> layers_;
  Values embed_tokens_, norm_, lm_head_, inverse_frequencies_;
  std::vector<int32_t> token_ids_, block_tables_;
  std::vector<Values> keys_, values_;  // of each layer, as the pages hold them
  int64_t max_pages_ = 0, num_pages_ = 0;
  FusedDecoderModel model_;
  std::vector<DeviceTensor> owned_;
};

// How often repeated steps run. Races hide from a few runs: ask for 10,000 on a GPU.
int64_t num_repeats() {
  const char* text = std::getenv("TESSERA_REPEATS");
  return text == nullptr ? 20 : std::atoll(text);
}

class FusedDecoderTest : public BackendTest {
 protected:
  // Null, after a check that it is rightly so, on devices that have none.
  std::unique_ptr<FusedDecoder> decoder_of(const TestModel& model) const {
    std::string problem;
    std::unique_ptr<FusedDecoder> decoder = backend().make_fused_decoder(model.model(), problem);
    const bool may_have = runs_hopper() && activation() == DType::kBFloat16;
    EXPECT_EQ(decoder != nullptr, may_have) << problem;
    EXPECT_EQ(problem.empty(), may_have);
    return decoder;
  }

  void check(const ModelSize& size, const std::vector<int64_t>& contexts) const {
    SCOPED_TRACE(testing::Message() << "hidden_size " << size.hidden_size << ", intermediate_size "
                                    << size.intermediate_size << ", " << size.num_heads << "/"
                                    << size.num_kv_heads << " heads of " << size.head_dim
                                    << ", contexts " << testing::PrintToString(contexts));
    TestModel model(backend(), size, contexts);
    const std::unique_ptr<FusedDecoder> decoder = decoder_of(model);
    if (decoder == nullptr) return;
    const Deadline deadline("fused decode");
    const Values plain = model.unfused();
    const Values plain_rows = model.written_rows();
    model.upload_pages();
    const Values actual =
        to_host(backend(), model.fused(*decoder, static_cast<int64_t>(contexts.size())));
    const Values actual_rows = model.written_rows();
    const Values expected = model.reference();
    const Shape shape{static_cast<int64_t>(contexts.size()), size.vocab_size};
    expect_as_exact(actual, expected, plain, 2.0, DType::kBFloat16, shape);
    // The reference's rows of later layers differ by all the rounding before them: compare with
    // those of the single operations.
    const double largest = std::abs(
        *std::ranges::max_element(plain_rows, {}, [](double value) { return std::abs(value); }));
    for (size_t i = 0; i < plain_rows.size(); ++i) {
      ASSERT_NEAR(actual_rows[i], plain_rows[i], 0.05 * largest) << "row element " << i;
    }
  }
};

TEST_P(FusedDecoderTest, OneSequence) {
  for (const int64_t context : {1, 2, 31, 32, 33, 63, 64, 65, 257, 512, 769}) check({}, {context});
  for (const int64_t context : {256, 513}) check({.hidden_size = 1280, .head_dim = 128}, {context});
}

TEST_P(FusedDecoderTest, LongContexts) {
  check({.sliding_window = 300}, {700});
  check({.num_layers = 2}, {5000});
  check({.hidden_size = 1280, .intermediate_size = 512, .head_dim = 128, .num_layers = 2}, {9001});
}

TEST_P(FusedDecoderTest, SeveralSequences) {
  check({}, {1, 1});
  check({}, {40, 300, 1});
  check({}, {64, 65, 66, 127, 128});
  check({}, {300, 1, 2, 700, 31, 32, 33, 64});
  // More blocks than some products have items.
  check({.hidden_size = 1280, .num_layers = 2}, {300, 1, 2, 700, 31, 32, 33, 64});
}

TEST_P(FusedDecoderTest, HeadShapes) {
  for (const int64_t head_dim : {64, 128}) {
    for (const auto& [num_heads, num_kv_heads] :
         {std::pair{4, 4}, std::pair{8, 1}, std::pair{16, 2}, std::pair{32, 8}}) {
      const ModelSize size{.num_heads = num_heads,
                           .num_kv_heads = num_kv_heads,
                           .head_dim = head_dim,
                           .num_layers = 2};
      check(size, {150});
      check(size, {65, 16, 17, 90});
    }
  }
}

TEST_P(FusedDecoderTest, ModelShapes) {
  check({.hidden_size = 768, .intermediate_size = 2304, .vocab_size = 8, .num_layers = 1}, {100});
  check({.hidden_size = 1280, .intermediate_size = 1536, .vocab_size = 5000, .num_layers = 4},
        {70});
  check({.hidden_size = 2304, .intermediate_size = 5120, .num_layers = 2}, {70, 90});
  // Of the long products, blocks claim items; at 32 blocks these are long.
  check({.intermediate_size = 4096, .vocab_size = 5003}, {100});
  check({.intermediate_size = 2304, .vocab_size = 5003}, {100, 3, 70});
  check({.page_size = 128}, {500, 129});
  check({.head_dim = 128, .page_size = 16}, {17, 16, 100});
}

TEST_P(FusedDecoderTest, SlidingWindow) {
  check({.sliding_window = 40}, {300});
  check({.sliding_window = 64}, {300, 1, 64, 65});
  check({.head_dim = 128, .sliding_window = 1}, {50});
}

// Steps of different sizes in turn leave nothing behind for each other. Without the fence in
// UnitRing::release() about one step of eight sequences in a hundred differed.
TEST_P(FusedDecoderTest, RepeatedStepsAreTheSameBitByBit) {
  for (const ModelSize& size :
       {ModelSize{.intermediate_size = 4096, .vocab_size = 5003}, ModelSize{.hidden_size = 1280},
        ModelSize{.hidden_size = 1280, .head_dim = 128},
        ModelSize{.hidden_size = 2304, .intermediate_size = 1536}}) {
    TestModel model(backend(), size, {700, 3, 129, 64, 1, 2049, 300, 65});
    const std::unique_ptr<FusedDecoder> decoder = decoder_of(model);
    if (decoder == nullptr) return;
    std::vector<std::vector<uint8_t>> first(9);
    for (int64_t repeat = 0; repeat < num_repeats(); ++repeat) {
      const Deadline deadline("fused decode");
      for (const int64_t count : {1, 8, 1, 1, 3, 8}) {
        const std::vector<uint8_t> bytes = bytes_of(backend(), model.fused(*decoder, count));
        std::vector<uint8_t>& expected = first[index_of(count)];
        if (expected.empty()) {
          expected = bytes;
          for (const double logit : to_host(backend(), model.fused(*decoder, count))) {
            ASSERT_TRUE(std::isfinite(logit));
          }
        }
        ASSERT_TRUE(bytes == expected) << count << " sequences, repeat " << repeat;
      }
    }
  }
}

FOR_EACH_BACKEND(FusedDecoderTest);

}  // namespace
}  // namespace tessera
