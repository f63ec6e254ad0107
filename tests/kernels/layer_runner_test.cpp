// Two layers of a LayerRunner against double precision, with every field of a block that it claims
// to compute, on every device: with the fused operations that it has, and one by one.
#include "kernels/layer_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "kernels/backend_limits.h"
#include "kernels/tensor/buffer.h"
#include "tests/kernels/altered_block.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/layer_problem.h"
#include "tests/kernels/tolerance.h"

namespace tessera {
namespace {

constexpr BlockSizes kSizes = LayerProblem::kSizes;
constexpr size_t kNumLayers = LayerProblem::kNumLayers;
constexpr int64_t kPageSize = 16;

// The tensors of a problem on a device, those that the block has.
class OnDevice {
 public:
  OnDevice(const LayerProblem& problem, const BlockSpec& block, Backend& backend)
      : problem_(problem), block_(block), backend_(backend) {
    for (const LayerValues& layer : problem.layers()) {
      weights_.push_back(weights_of(layer));
      pages_.push_back({.keys = empty_pages(), .values = empty_pages()});
    }
    for (const Values& table : problem.rope_tables()) {
      tables_.push_back(floats(table, {2, kSizes.head_dim / 2}));
    }
  }

  // To leave something out, or to have something that the block has not.
  std::vector<LayerWeights>& weights() { return weights_; }

  // The residual stream after the layers, by a runner over these operations of the backend. A norm
  // that is not the one to come would show: every norm has weights of its own. num_needed: of how
  // many tokens, the last ones; 0: of all.
  Values compute(FusedOperations& operations, int64_t num_needed = 0) {
    const int64_t num_tokens = problem_.num_tokens();
    const BackendLimits limits{.max_tokens = num_tokens,
                               .max_sequences = 1,
                               .max_context_length = num_tokens,
                               .num_heads = kSizes.num_heads,
                               .num_kv_heads = kSizes.num_kv_heads,
                               .head_dim = kSizes.head_dim};
    Arena measure;
    LayerRunner(measure, block_, kSizes, limits, operations);
    const DeviceTensor scratch = poisoned(
        backend_, DType::kFloat32, {static_cast<int64_t>(measure.used_bytes() / sizeof(float))});
    Arena arena(scratch.buffer);
    const LayerRunner runner(arena, block_, kSizes, limits, operations);
    const LayerStep step = make_step();
    runner.begin(step, weights_[0]);
    for (size_t i = 0; i < kNumLayers; ++i) {
      const LayerTensors layer{
          .index = static_cast<int64_t>(i), .weights = weights_[i], .pages = pages_[i]};
      const bool is_last = i + 1 == kNumLayers;
      if (is_last && num_needed > 0) return last_of(runner, step, layer, num_needed);
      runner.attention_block(step, layer);
      runner.feed_forward_block(step, layer, is_last ? nullptr : &weights_[i + 1]);
    }
    return to_host(backend_, step.residual);
  }

 private:
  // The last layer, for the last tokens alone.
  Values last_of(const LayerRunner& runner, const LayerStep& step, const LayerTensors& layer,
                 int64_t num_needed) {
    std::vector<int32_t> rows(static_cast<size_t>(num_needed));
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(problem_.num_tokens() - num_needed));
    LayerStep needed = step;
    needed.residual = own(poisoned(backend_, DType::kFloat32, {num_needed, kSizes.hidden_size}));
    needed.attention.query_starts =
        own(to_device(backend_, {0, static_cast<int32_t>(num_needed)}, Shape{2}));
    needed.attention.num_decodes = 1;
    needed.attention.max_decode_query_length = num_needed;
    needed.attention.max_query_length = num_needed;
    runner.last_layer(step, layer, own(to_device(backend_, rows, {num_needed})), needed);
    return to_host(backend_, needed.residual);
  }

  Tensor own(DeviceTensor tensor) {
    owned_.push_back(std::move(tensor));
    return owned_.back().view;
  }
  Tensor floats(const Values& values, const Shape& shape) {
    return own(to_device(backend_, values, DType::kFloat32, shape));
  }
  Tensor vector_if(bool has_vector, const Values& values) {
    return has_vector ? floats(values, {static_cast<int64_t>(values.size())}) : Tensor{};
  }
  WeightMatrix matrix(const Values& values, int64_t columns, bool has_bias, const Values& bias) {
    WeightMatrix result =
        own(to_device(backend_, values, backend_.operations().weight_dtype(DType::kBFloat16),
                      {static_cast<int64_t>(values.size()) / columns, columns}));
    result.bias = vector_if(has_bias, bias);
    return result;
  }
  LayerWeights weights_of(const LayerValues& layer) {
    const bool has_pre_norms = block_.norm_placement != NormPlacement::kPost;
    const bool has_post_norms = block_.norm_placement != NormPlacement::kPre;
    const Values& qk_norm =
        block_.qk_norm == QkNorm::kPerHead ? layer.head_norm : layer.projection_norm;
    const BiasSpec& biases = block_.biases;
    return {
        .input_layernorm = vector_if(has_pre_norms, layer.input_layernorm),
        .qkv_proj = matrix(layer.qkv_proj, kSizes.hidden_size, biases.qkv, layer.qkv_bias),
        .qk_norm = vector_if(block_.qk_norm != QkNorm::kNone, qk_norm),
        .o_proj = matrix(layer.o_proj, kSizes.query_size(), biases.output, layer.o_bias),
        .post_attention_layernorm = vector_if(has_post_norms, layer.post_attention_layernorm),
        .pre_feedforward_layernorm =
            vector_if(has_pre_norms && !block_.is_parallel, layer.pre_feedforward_layernorm),
        .gate_up_proj =
            matrix(layer.gate_up_proj, kSizes.hidden_size, biases.gate_up, layer.gate_up_bias),
        .down_proj =
            matrix(layer.down_proj, kSizes.intermediate_size, biases.down, layer.down_bias),
        .post_feedforward_layernorm = vector_if(has_post_norms, layer.post_feedforward_layernorm)};
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

  const LayerProblem& problem_;
  BlockSpec block_;
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
      const LayerProblem problem(operations().weight_dtype(DType::kBFloat16), num_tokens);
      const Values exact = problem.reference(block, {});
      const Values plain = problem.reference(block, activation());
      FusedOperations one_by_one(operations());
      for (FusedOperations* of_runner : {&backend().fused_operations(block), &one_by_one}) {
        SCOPED_TRACE(of_runner == &one_by_one ? "one by one" : "as the device has them");
        const Shape shape{num_tokens, kSizes.hidden_size};
        expect_as_exact(OnDevice(problem, block, backend()).compute(*of_runner), exact, plain,
                        factor(), activation(), shape);
        for (const int64_t num_needed : {1, 5}) {
          SCOPED_TRACE(testing::Message() << "the last " << num_needed << " alone");
          const Values last = OnDevice(problem, block, backend()).compute(*of_runner, num_needed);
          Values all = exact;
          std::ranges::copy(last, all.end() - std::ssize(last));
          expect_as_exact(all, exact, plain, factor(), activation(), shape);
        }
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

// Blocks of families that differ from Llama's in several fields at once.
TEST_P(LayerRunnerTest, ComputesBlocksOfFamilies) {
  BlockSpec gemma2 = block_of(kNumLayers);
  gemma2.norm_placement = NormPlacement::kPreAndPost;
  gemma2.activation = Activation::kGeluTanh;
  gemma2.attention_scale = 0.0625;
  gemma2.attention_softcap = 5.0;
  gemma2.layers[0].sliding_window = 4;
  check(gemma2, "Gemma 2");

  BlockSpec gemma3 = gemma2;
  gemma3.attention_softcap = 0.0;
  gemma3.qk_norm = QkNorm::kPerHead;
  gemma3.layers[0].rope_table = 1;
  check(gemma3, "Gemma 3");

  BlockSpec olmo2 = block_of(kNumLayers);
  olmo2.norm_placement = NormPlacement::kPost;
  olmo2.qk_norm = QkNorm::kWholeProjection;
  check(olmo2, "OLMo 2");

  BlockSpec cohere2 = block_of(kNumLayers);
  cohere2.norm = NormKind::kLayerNorm;
  cohere2.is_parallel = true;
  cohere2.layers[0].sliding_window = 4;
  cohere2.layers[1].rope_table.reset();
  check(cohere2, "Cohere 2");

  BlockSpec command_r_plus = block_of(kNumLayers);
  command_r_plus.norm = NormKind::kLayerNorm;
  command_r_plus.is_parallel = true;
  command_r_plus.qk_norm = QkNorm::kLayerNormPerHead;
  check(command_r_plus, "Command R+");

  BlockSpec glm4 = block_of(kNumLayers);
  glm4.norm_placement = NormPlacement::kPreAndPost;
  glm4.biases.qkv = true;
  check(glm4, "GLM-4");

  BlockSpec granite = block_of(kNumLayers);
  granite.residual_multiplier = 0.22;
  granite.attention_scale = 0.015625;
  check(granite, "Granite");
}

// No family has these, but nothing keeps one from it.
TEST_P(LayerRunnerTest, ComputesFieldsTogether) {
  BlockSpec block = block_of(kNumLayers);
  block.biases = {.qkv = true, .output = true, .gate_up = true, .down = true};
  block.qk_norm = QkNorm::kWholeProjection;
  block.activation = Activation::kGeluTanh;
  block.query_scaling = {.beta = 0.5, .original_max_position_embeddings = 3};
  block.residual_multiplier = 0.5;
  check(block, "all but norms");
  block.is_parallel = true;
  for (const NormPlacement placement : {NormPlacement::kPost, NormPlacement::kPreAndPost}) {
    block.norm_placement = placement;
    check(block, "parallel, with norms after halves");
  }
}

// What a block has no place for would be left out without any other sign.
TEST_P(LayerRunnerTest, RefusesWeightsOfAnotherBlock) {
  const LayerProblem problem(operations().weight_dtype(DType::kBFloat16), 6);
  FusedOperations& fused = backend().fused_operations(block_of(kNumLayers));
  const auto refuses = [&](const std::function<void(LayerWeights&)>& change) {
    OnDevice on_device(problem, block_of(kNumLayers), backend());
    LayerWeights& weights = on_device.weights()[1];
    change(weights);
    EXPECT_THROW(on_device.compute(fused), Error);
  };
  refuses([](LayerWeights& weights) { weights.qkv_proj.bias = weights.input_layernorm; });
  refuses([](LayerWeights& weights) { weights.o_proj.bias = weights.input_layernorm; });
  refuses([](LayerWeights& weights) { weights.gate_up_proj.bias = weights.input_layernorm; });
  refuses([](LayerWeights& weights) { weights.down_proj.bias = weights.input_layernorm; });
  refuses([](LayerWeights& weights) { weights.qk_norm = weights.input_layernorm; });
  refuses([](LayerWeights& weights) { weights.pre_feedforward_layernorm = {}; });
  refuses(
      [](LayerWeights& weights) { weights.post_attention_layernorm = weights.input_layernorm; });
  refuses(
      [](LayerWeights& weights) { weights.post_feedforward_layernorm = weights.input_layernorm; });
}

FOR_EACH_BACKEND(LayerRunnerTest);

}  // namespace
}  // namespace tessera
