// Models whose heads and intermediate features are filled up with zeros compute what they did. On
// the CPU, which takes any sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/model/model_runner.h"
#include "engine/model/plan_memory.h"
#include "model_loaders/padded_config.h"
#include "model_loaders/weight_inventory.h"
#include "tests/engine/model_fixture.h"

namespace tessera {
namespace {

class PaddedModelTest : public testing::TestWithParam<const char*> {
 protected:
  // Of every token of a prompt that is longer than the golden models' windows.
  std::vector<float> logits(const ModelConfig& config, const Checkpoint& checkpoint) {
    std::unique_ptr<Backend> backend = make_cpu_backend(1);
    const MemoryPlan plan = plan_memory(
        config, {.max_sequences = 1, .page_size = 16}, backend->fused_operations(config.block),
        ModelWeights::size_bytes(config, checkpoint, backend->operations()));
    ModelRunner runner(config, checkpoint, plan, config.vocab_size, std::move(backend));
    EXPECT_EQ(runner.read_weights(checkpoint, true, {}), bytes_of(checkpoint, config));
    std::vector<TokenId> prompt;
    for (TokenId i = 0; i < 40; ++i) prompt.push_back(3 + i * 7 % 250);
    const std::vector<int32_t> pages = {2, 0, 1};
    return runner.prompt_logits(prompt, pages, {});
  }
  static uint64_t bytes_of(const Checkpoint& checkpoint, const ModelConfig& config) {
    uint64_t bytes = 0;
    for (const WeightSpec& spec : weight_specs(config)) {
      for (const WeightSource& source : spec.sources) {
        const TensorEntry& entry = checkpoint.expect(source.name, source.shape);
        bytes += static_cast<uint64_t>(source.shape.num_elements()) * size_of(entry.dtype);
      }
    }
    return bytes;
  }
};

TEST_P(PaddedModelTest, ComputesWhatTheModelComputes) {
  const ModelFixture model(GetParam());
  ModelConfig config = read_model_folder(model.options()).config;
  const Checkpoint checkpoint = Checkpoint::open(model.path());
  adopt_layout(checkpoint, config);
  const std::vector<float> expected = logits(config, checkpoint);
  float largest = 0.0f;
  for (const float logit : expected) largest = std::max(largest, std::abs(logit));
  // The epsilon of norms of heads weighs a little more or less.
  const float tolerance = config.block.qk_norm == QkNorm::kNone ? 1e-5f : 1e-4f;
  for (const PaddableSizes& more :
       {PaddableSizes{.intermediate_size = 5}, PaddableSizes{.head_dim = 22},
        PaddableSizes{.hidden_size = 24}, PaddableSizes{.num_heads = config.num_kv_heads},
        PaddableSizes{.hidden_size = 8,
        .intermediate_size = 3,
        .num_heads = 2 * config.num_kv_heads,
        .head_dim = 64}}) {
    const ModelConfig padded = padded_config(
        config, {.hidden_size = config.hidden_size + more.hidden_size,
                 .intermediate_size = config.intermediate_size + more.intermediate_size,
                 .num_heads = config.num_heads + more.num_heads,
                 .head_dim = config.head_dim + more.head_dim});
    EXPECT_THAT(logits(padded, checkpoint),
                testing::Pointwise(testing::FloatNear(tolerance * largest), expected))
        << more.hidden_size << ' ' << more.intermediate_size << ' ' << more.num_heads << ' '
        << more.head_dim;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PaddedModelTest,
                         testing::Values("gqa_d64", "llama_biases", "phi3_short", "qwen3",
                                         "gemma3_text", "olmo2", "glm4"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tessera
