// What of a block is not in its layers: embeddings and logits. On the CPU, whose tensors the host
// can read.
#include "engine/model/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/backend.h"
#include "kernels/backend_limits.h"
#include "model_loaders/model_config.h"

namespace tessera {
namespace {

constexpr int64_t kStepTokens = 5;

ModelConfig one_layer_config() {
  ModelConfig config;
  config.hidden_size = 24;
  config.intermediate_size = 32;
  config.num_layers = 1;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 16;
  config.vocab_size = 41;
  config.block.layers.resize(1);
  return config;
}

class TransformerTest : public testing::Test {
 protected:
  // Logits of every sampled token, with embeddings multiplied by `factor` in the checkpoint.
  std::vector<float> logits(const ModelConfig& config, float factor = 1.0f) {
    std::mt19937 engine(7);
    std::normal_distribution<float> normal(0.0f, 0.5f);
    const auto random = [&](const Shape& shape) {
      const Tensor tensor = empty(shape);
      std::generate_n(tensor.as<float>(), shape.num_elements(), [&] { return normal(engine); });
      return tensor;
    };
    const int64_t query_size = config.num_heads * config.head_dim;
    const int64_t qkv_size = query_size + 2 * config.num_kv_heads * config.head_dim;
    DecoderWeights weights;
    weights.embed_tokens = random({config.vocab_size, config.hidden_size});
    weights.layers.push_back(
        {.input_layernorm = random({config.hidden_size}),
         .qkv_proj = random({qkv_size, config.hidden_size}),
         .o_proj = random({config.hidden_size, query_size}),
         .pre_feedforward_layernorm = random({config.hidden_size}),
         .gate_up_proj = random({2 * config.intermediate_size, config.hidden_size}),
         .down_proj = random({config.hidden_size, config.intermediate_size})});
    weights.norm = filled({config.hidden_size}, 1.0f);
    weights.lm_head = lm_head_of_ones_ ? filled({config.vocab_size, config.hidden_size}, 1.0f)
                                       : random({config.vocab_size, config.hidden_size});
    weights.rope_tables = {random({2, config.head_dim / 2})};
    const Tensor& table = weights.embed_tokens.data;
    for (int64_t i = 0; i < table.num_elements(); ++i) table.as<float>()[i] *= factor;
    return logits(config, weights);
  }

  bool lm_head_of_ones_ = false;
  std::vector<int32_t> sampled_ = {0, 1, 2, 3, 4};

 private:
  std::vector<float> logits(const ModelConfig& config, const DecoderWeights& weights) {
    const BackendLimits limits{.max_tokens = kStepTokens,
                               .max_sequences = kStepTokens,
                               .max_context_length = kStepTokens,
                               .num_heads = config.num_heads,
                               .num_kv_heads = config.num_kv_heads,
                               .head_dim = config.head_dim};
    FusedOperations& fused = backend_->fused_operations(config.block);
    Arena measure;
    Activations(measure, config, limits, limits.max_sequences, fused);
    const Buffer memory = backend_->device().allocate(measure.used_bytes(), "activations");
    Arena arena(memory);
    const Activations activations(arena, config, limits, limits.max_sequences, fused);
    const Shape page_shape{2, config.num_kv_heads, 16, config.head_dim};
    const KvPages pages{empty(page_shape), empty(page_shape)};
    Transformer transformer(weights, {&pages, 1}, activations, backend_->operations());
    const Tensor tokens = integers({3, 40, 0, 7, 7});
    // A sequence of three tokens and one of two.
    const AttentionBatch attention = {.query_starts = integers({0, 3, kStepTokens}),
                                      .context_lengths = integers({3, 2}),
                                      .block_tables = integers({0, 1}).reshape({2, 1}),
                                      .num_sequences = 2,
                                      .num_decodes = 2,
                                      .max_decode_query_length = 3,
                                      .max_query_length = 3,
                                      .max_context_length = 3};
    const Tensor all =
        transformer.sampled_logits({.token_ids = tokens,
                                    .positions = integers({0, 1, 2, 0, 1}),
                                    .kv_slots = integers({0, 1, 2, 16, 17}),
                                    .attention = attention,
                                    .sampled_rows = integers(sampled_),
                                    .sampled_attention = sampled_attention(attention),
                                    .sampling = {}});
    return {all.as<float>(), all.as<float>() + all.num_elements()};
  }

  AttentionBatch sampled_attention(AttentionBatch attention) {
    if (std::ssize(sampled_) == kStepTokens) return {};
    const auto num_first =
        static_cast<int32_t>(std::ranges::count_if(sampled_, [](int32_t row) { return row < 3; }));
    attention.query_starts = integers({0, num_first, static_cast<int32_t>(sampled_.size())});
    return attention;
  }

  Tensor empty(const Shape& shape, DType dtype = DType::kFloat32) {
    owned_.push_back(backend_->device().allocate(
        static_cast<size_t>(shape.num_elements()) * size_of(dtype), "a test"));
    return {owned_.back().data(), dtype, DeviceType::kCpu, shape};
  }
  Tensor filled(const Shape& shape, float value) {
    const Tensor tensor = empty(shape);
    std::fill_n(tensor.as<float>(), shape.num_elements(), value);
    return tensor;
  }
  Tensor integers(const std::vector<int32_t>& values) {
    const Tensor tensor = empty({static_cast<int64_t>(values.size())}, DType::kInt32);
    std::ranges::copy(values, tensor.as<int32_t>());
    return tensor;
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  std::vector<Buffer> owned_;
};

TEST_F(TransformerTest, MultipliesEmbeddings) {
  ModelConfig config = one_layer_config();
  const std::vector<float> plain = logits(config);
  const std::vector<float> multiplied = logits(config, 4.0f);
  EXPECT_NE(plain, multiplied);
  config.block.embedding_multiplier = 4.0;  // a power of two, so that nothing is rounded
  EXPECT_EQ(logits(config), multiplied);
}

TEST_F(TransformerTest, CapsLogits) {
  ModelConfig config = one_layer_config();
  const std::vector<float> plain = logits(config);
  config.block.logit_softcap = 2.0;
  const std::vector<float> capped = logits(config);
  EXPECT_GT(std::abs(*std::ranges::max_element(plain)), 4.0f);  // of which the cap takes a half
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(capped[i], 2.0f * std::tanh(plain[i] / 2.0f), 1e-5f);
  }
}

// The last layer computes the sampled tokens alone: as all of them, on the CPU bit by bit.
TEST_F(TransformerTest, SampledTokensNeedNoOthers) {
  const ModelConfig config = one_layer_config();
  const std::vector<float> all = logits(config);
  const auto row_of = [&](const std::vector<float>& rows, size_t i) {
    const auto begin = rows.begin() + static_cast<int64_t>(i) * config.vocab_size;
    return std::vector<float>(begin, begin + config.vocab_size);
  };
  for (const std::vector<int32_t>& sampled :
       {std::vector<int32_t>{4}, {2}, {2, 4}, {1, 2}, {1, 2, 3, 4}}) {
    sampled_ = sampled;
    const std::vector<float> some = logits(config);
    ASSERT_EQ(some.size(), sampled.size() * static_cast<size_t>(config.vocab_size));
    for (size_t i = 0; i < sampled.size(); ++i) {
      EXPECT_EQ(row_of(some, i), row_of(all, static_cast<size_t>(sampled[i]))) << sampled[i];
    }
  }
}

// LayerNorm leaves nothing of what all features have in common.
TEST_F(TransformerTest, TheLastNormIsOfTheSameKind) {
  ModelConfig config = one_layer_config();
  lm_head_of_ones_ = true;
  const auto largest = [&] {
    const std::vector<float> all = logits(config);
    return std::abs(*std::ranges::max_element(all, {}, [](float x) { return std::abs(x); }));
  };
  EXPECT_GT(largest(), 0.5f);
  config.block.norm = NormKind::kLayerNorm;
  EXPECT_LT(largest(), 1e-4f);
}

}  // namespace
}  // namespace tessera
