// Two layers of a LayerRunner against double precision, with every field of a block that it claims
// to compute, on every device: with the fused operations that it has, and one by one.
#include "kernels/layer_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "kernels/backend_limits.h"
#include "kernels/tensor/buffer.h"
#include "tests/kernels/altered_block.h"
#include "tests/kernels/attention/reference_attention.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"
#include "tests/kernels/rows/kv_rows.h"

namespace tessera {
namespace {

using Values = std::vector<double>;

constexpr BlockSizes kSizes{.hidden_size = 256,
                            .intermediate_size = 192,
                            .num_heads = 4,
                            .num_kv_heads = 2,
                            .head_dim = 64,
                            .rms_norm_eps = 1e-5f};
constexpr size_t kNumLayers = 2;
constexpr size_t kNumTables = 2;
constexpr int64_t kPageSize = 16;

struct LayerValues {
  Values input_layernorm, qkv_proj, qk_norm, o_proj, pre_feedforward_layernorm, gate_up_proj,
      down_proj;
};

// One sequence of so many tokens, all of them of this step.
class Problem {
 public:
  Problem(DType weight_type, int64_t num_tokens) : num_tokens_(num_tokens) {
    const auto matrix = [&](int64_t rows, int64_t columns) {
      const double deviation = 1.5 / std::sqrt(static_cast<double>(columns));
      return rounded(random_.normal(rows * columns, deviation), weight_type);
    };
    const auto norm = [&] { return rounded(random_.normal(kSizes.hidden_size), DType::kFloat32); };
    for (size_t i = 0; i < kNumLayers; ++i) {
      layers_.push_back({.input_layernorm = norm(),
                         .qkv_proj = matrix(kSizes.qkv_size(), kSizes.hidden_size),
                         .qk_norm = {},
                         .o_proj = matrix(kSizes.hidden_size, kSizes.query_size()),
                         .pre_feedforward_layernorm = norm(),
                         .gate_up_proj = matrix(2 * kSizes.intermediate_size, kSizes.hidden_size),
                         .down_proj = matrix(kSizes.hidden_size, kSizes.intermediate_size)});
    }
    residual_ = rounded(random_.normal(num_tokens * kSizes.hidden_size), DType::kFloat32);
    tables_ = {rope_frequencies(kSizes.head_dim), rope_frequencies(kSizes.head_dim)};
    for (double& frequency : tables_[1]) frequency *= 0.5;
    tables_.push_back(Values(tables_[0].size(), 0.0));  // of layers without one
    for (LayerValues& layer : layers_) {
      layer.qk_norm = rounded(random_.normal(2 * kSizes.head_dim), DType::kFloat32);
    }
  }

  // The residual stream after the layers; with a `dtype`, intermediate results are rounded to it as
  // an implementation would.
  Values reference(const BlockSpec& block, std::optional<DType> dtype) const {
    const auto round = [&](const Values& values) { return rounded_if(values, dtype); };
    Values x = residual_;
    for (size_t i = 0; i < kNumLayers; ++i) {
      const LayerValues& layer = layers_[i];
      const auto product = [&](const Values& in, const Values& weight, int64_t size) {
        return round(reference_linear(in, weight, size).values);
      };
      const auto norm = [&](const Values& weight) {
        return round(reference_rms_norm(x, weight, kSizes.rms_norm_eps).values);
      };
      const Values qkv = product(norm(layer.input_layernorm), layer.qkv_proj, kSizes.hidden_size);
      const Values attention = round(attend(qkv, block, i, dtype));
      x = reference_linear(attention, layer.o_proj, kSizes.query_size(), x).values;
      const Values gate_up =
          product(norm(layer.pre_feedforward_layernorm), layer.gate_up_proj, kSizes.hidden_size);
      const Values hidden = round(reference_silu_mul(gate_up, kSizes.intermediate_size).values);
      x = reference_linear(hidden, layer.down_proj, kSizes.intermediate_size, x).values;
    }
    return x;
  }

  int64_t num_tokens() const { return num_tokens_; }
  const std::vector<LayerValues>& layers() const { return layers_; }
  const Values& residual() const { return residual_; }
  const std::vector<Values>& tables() const { return tables_; }

 private:
  static Values rounded_if(const Values& values, std::optional<DType> dtype) {
    return dtype ? rounded(values, *dtype) : values;
  }

  // A query or key head as it is rotated.
  static Values normed(const Values& head, const Values& qk_norm, bool is_query,
                       std::optional<DType> dtype) {
    const auto weights = qk_norm.begin() + (is_query ? 0 : kSizes.head_dim);
    const Values weight(weights, weights + kSizes.head_dim);
    return rounded_if(reference_rms_norm(head, weight, kSizes.rms_norm_eps).values, dtype);
  }

  Values attend(const Values& qkv, const BlockSpec& block, size_t index,
                std::optional<DType> dtype) const {
    const LayerSpec& layer = block.layers[index];
    const int64_t token_heads = kSizes.num_heads + 2 * kSizes.num_kv_heads;
    const Values& table =
        tables_[layer.rope_table ? static_cast<size_t>(*layer.rope_table) : kNumTables];
    ReferenceSequence sequence;
    for (int64_t t = 0; t < num_tokens_; ++t) {
      for (int64_t h = 0; h < token_heads; ++h) {
        const auto begin = qkv.begin() + (t * token_heads + h) * kSizes.head_dim;
        Values head(begin, begin + kSizes.head_dim);
        const bool is_query = h < kSizes.num_heads;
        const bool is_value = h >= kSizes.num_heads + kSizes.num_kv_heads;
        if (block.qk_norm == QkNorm::kPerHead && !is_value) {
          head = normed(head, layers_[index].qk_norm, is_query, dtype);
        }
        const Values row =
            is_value
                ? head
                : rounded_if(reference_rope(head, static_cast<int32_t>(t), table).values, dtype);
        Values& rows = is_query ? sequence.queries : is_value ? sequence.values : sequence.keys;
        rows.insert(rows.end(), row.begin(), row.end());
      }
    }
    const double usual_scale = 1.0 / std::sqrt(static_cast<double>(kSizes.head_dim));
    return reference_attention(
               sequence,
               {.num_heads = kSizes.num_heads,
                .num_kv_heads = kSizes.num_kv_heads,
                .head_dim = kSizes.head_dim,
                .scale = block.attention_scale == 0.0 ? usual_scale : block.attention_scale,
                .softcap = block.attention_softcap,
                .causal = true,
                .sliding_window = layer.sliding_window})
        .out.values;
  }

  RandomValues random_{3};
  int64_t num_tokens_;
  std::vector<LayerValues> layers_;
  Values residual_;
  std::vector<Values> tables_;
};

// The tensors of a problem on a device.
class OnDevice {
 public:
  OnDevice(const Problem& problem, Backend& backend) : problem_(problem), backend_(backend) {
    for (const LayerValues& layer : problem.layers()) {
      weights_.push_back({.input_layernorm = norm(layer.input_layernorm),
                          .qkv_proj = matrix(layer.qkv_proj, kSizes.hidden_size),
                          .qk_norm = floats(layer.qk_norm, {2 * kSizes.head_dim}),
                          .o_proj = matrix(layer.o_proj, kSizes.query_size()),
                          .pre_feedforward_layernorm = norm(layer.pre_feedforward_layernorm),
                          .gate_up_proj = matrix(layer.gate_up_proj, kSizes.hidden_size),
                          .down_proj = matrix(layer.down_proj, kSizes.intermediate_size)});
      pages_.push_back({.keys = empty_pages(), .values = empty_pages()});
    }
    for (size_t i = 0; i < kNumTables; ++i) {
      tables_.push_back(floats(problem.tables()[i], {kSizes.head_dim / 2}));
    }
  }

  // The residual stream after the layers, by a runner over these operations of the backend. A norm
  // that is not the one to come would show: every norm has weights of its own.
  Values compute(const BlockSpec& block, FusedOperations& operations) {
    const int64_t num_tokens = problem_.num_tokens();
    const BackendLimits limits{.max_tokens = num_tokens,
                               .max_sequences = 1,
                               .max_context_length = num_tokens,
                               .num_heads = kSizes.num_heads,
                               .num_kv_heads = kSizes.num_kv_heads,
                               .head_dim = kSizes.head_dim};
    Arena measure;
    LayerRunner(measure, block, kSizes, limits, operations);
    const DeviceTensor scratch = poisoned(
        backend_, DType::kFloat32, {static_cast<int64_t>(measure.used_bytes() / sizeof(float))});
    Arena arena(scratch.buffer);
    const LayerRunner runner(arena, block, kSizes, limits, operations);
    const LayerStep step = make_step();
    runner.begin(step, weights_[0].input_layernorm);
    for (size_t i = 0; i < kNumLayers; ++i) {
      LayerWeights weights = weights_[i];
      if (block.qk_norm == QkNorm::kNone) weights.qk_norm = {};
      const LayerTensors layer{
          .index = static_cast<int64_t>(i), .weights = weights, .pages = pages_[i]};
      const bool is_last = i + 1 == kNumLayers;
      runner.attention_block(step, layer, weights_[i].pre_feedforward_layernorm);
      runner.feed_forward_block(step, layer, is_last ? Tensor{} : weights_[i + 1].input_layernorm);
    }
    return to_host(backend_, step.residual);
  }

 private:
  Tensor own(DeviceTensor tensor) {
    owned_.push_back(std::move(tensor));
    return owned_.back().view;
  }
  Tensor floats(const Values& values, const Shape& shape) {
    return own(to_device(backend_, values, DType::kFloat32, shape));
  }
  Tensor norm(const Values& values) { return floats(values, {kSizes.hidden_size}); }
  Tensor matrix(const Values& values, int64_t columns) {
    return own(to_device(backend_, values, backend_.operations().weight_dtype(DType::kBFloat16),
                         {static_cast<int64_t>(values.size()) / columns, columns}));
  }
  Tensor empty_pages() {
    return own(poisoned(backend_, backend_.operations().activation_dtype(),
                        {num_pages(), kSizes.num_kv_heads, kPageSize, kSizes.head_dim}));
  }
  int64_t num_pages() const { return problem_.num_tokens() / kPageSize + 1; }
  // 0, 1, 2, ...
  Tensor count_up(int64_t count, const Shape& shape) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    return own(to_device(backend_, values, shape));
  }

  LayerStep make_step() {
    const int64_t num_tokens = problem_.num_tokens();
    const auto length = static_cast<int32_t>(num_tokens);
    return {.residual = floats(problem_.residual(), {num_tokens, kSizes.hidden_size}),
            .positions = count_up(num_tokens, {num_tokens}),
            .kv_slots = count_up(num_tokens, {num_tokens}),
            .attention = {.query_starts = own(to_device(backend_, {0, length}, Shape{2})),
                          .context_lengths = own(to_device(backend_, std::vector{length}, {1})),
                          .block_tables = count_up(num_pages(), {1, num_pages()}),
                          .num_sequences = 1,
                          .num_decodes = num_tokens <= kMaxDecodeQueryLength ? 1 : 0,
                          .max_decode_query_length = std::min(num_tokens, kMaxDecodeQueryLength),
                          .max_query_length = num_tokens,
                          .max_context_length = num_tokens},
            .rope_tables = tables_};
  }

  const Problem& problem_;
  Backend& backend_;
  std::vector<DeviceTensor> owned_;
  std::vector<LayerWeights> weights_;
  std::vector<KvPages> pages_;
  std::vector<Tensor> tables_;
};

double largest_difference(const Values& a, const Values& b) {
  double largest = 0.0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class LayerRunnerTest : public BackendTest {
 protected:
  // Within so many times the error of the same roundings alone; float32 sums have errors besides.
  double factor() const { return activation() == DType::kFloat32 ? 30.0 : 4.0; }

  void check(const BlockSpec& block, std::string_view name) const {
    for (const int64_t num_tokens : {6, 24, 70}) {
      SCOPED_TRACE(testing::Message() << name << ", " << num_tokens << " tokens");
      const Problem problem(operations().weight_dtype(DType::kBFloat16), num_tokens);
      const Values exact = problem.reference(block, {});
      const Values plain = problem.reference(block, activation());
      FusedOperations one_by_one(operations());
      for (FusedOperations* of_runner : {&backend().fused_operations(block), &one_by_one}) {
        SCOPED_TRACE(of_runner == &one_by_one ? "one by one" : "as the device has them");
        expect_as_exact(OnDevice(problem, backend()).compute(block, *of_runner), exact, plain,
                        factor(), activation(), {num_tokens, kSizes.hidden_size});
      }
      if (block == block_of(kNumLayers)) continue;
      // What would pass for the altered block cannot be the usual one.
      const Values usual = problem.reference(block_of(kNumLayers), {});
      EXPECT_GT(largest_difference(exact, usual),
                2.0 * factor() * largest_difference(exact, plain));
    }
  }
};

TEST_P(LayerRunnerTest, ComputesLlamaBlocks) { check(block_of(kNumLayers), "llama"); }

TEST_P(LayerRunnerTest, ComputesEveryFieldThatItClaims) {
  for (const std::string_view field : kFieldsOfLayerRunner) {
    check(altered_block(field, kNumLayers), field);
  }
}

TEST_P(LayerRunnerTest, LayersMayDiffer) {
  BlockSpec block = block_of(kNumLayers);
  block.layers[0].rope_table.reset();
  block.layers[1].rope_table = 1;
  block.layers[1].sliding_window = 4;
  check(block, "layers that differ");
}

FOR_EACH_BACKEND(LayerRunnerTest);

}  // namespace
}  // namespace tessera
