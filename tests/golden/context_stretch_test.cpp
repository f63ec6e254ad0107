// Models whose RoPE is stretched for a context that config.json does not reach, beside the same
// weights with that stretch in config.json: those golden_test.cpp compares with transformers.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "kernels/cuda_status.h"
#include "tests/engine/model_fixture.h"

namespace tessera {
namespace {

constexpr int64_t kStretchedContext = 256;  // of the golden models

class ContextStretchTest : public testing::TestWithParam<DeviceChoice> {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (GetParam() == DeviceChoice::kCuda && status.num_devices == 0) {
      GTEST_SKIP() << status.problem;
    }
  }

  // What the engine computes of the longest golden prompt and its answer: logits, and the answer.
  struct Outcome {
    std::vector<float> logits;
    std::vector<TokenId> answer;

    bool operator==(const Outcome&) const = default;
  };
  static Outcome outcome_of(EngineOptions options, const GoldenRun& run) {
    options.device = GetParam();
    options.num_threads = 1;
    const auto engine = Engine::load(options);
    SamplingParams params = {.temperature = 0.0, .max_tokens = std::ssize(run.answer())};
    params.ignore_eos = true;
    const auto sequence = engine->create_sequence();
    return {engine->prompt_logits(run.tokens),
            engine->generate(*sequence, run.prompt(), params).tokens};
  }
  // That the edited model, stretched, is the golden one as it was.
  static void expect_golden(const ModelFixture& edited, const std::string& golden_model) {
    const GoldenRun run = read_golden(golden_model).runs.front();
    EngineOptions options = {.model = edited.path(), .context_size = kStretchedContext};
    EXPECT_THROW(Engine::load(options), ContextSizeError);
    options.rope_scaling = RopeScalingChoice::kAuto;
    EXPECT_TRUE(outcome_of(options, run) ==
                outcome_of({.model = golden_folder(golden_model)}, run));
  }
};

TEST_P(ContextStretchTest, RopeWithoutScaling) {
  const ModelFixture model("llama_stretched");
  model.edit("config.json", R"("max_position_embeddings": 256)",
             R"("max_position_embeddings": 64)");
  model.edit("config.json", R"("rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 64)",
             R"("rope_type": "default")");
  expect_golden(model, "llama_stretched");
}

TEST_P(ContextStretchTest, YarnThatReachesLessFar) {
  const ModelFixture model("llama_yarn");
  model.edit("config.json", R"("max_position_embeddings": 256)",
             R"("max_position_embeddings": 128)");
  model.edit("config.json", R"("factor": 4.0)", R"("factor": 2.0)");
  expect_golden(model, "llama_yarn");
}

// As many bits as there are: a choice that changes nothing where the context fits.
TEST_P(ContextStretchTest, AContextThatFits) {
  const GoldenRun run = read_golden("gqa_d64").runs.front();
  EngineOptions options = {.model = golden_folder("gqa_d64")};
  const Outcome expected = outcome_of(options, run);
  options.rope_scaling = RopeScalingChoice::kAuto;
  EXPECT_TRUE(outcome_of(options, run) == expected);
  options.context_size = 256;
  EXPECT_TRUE(outcome_of(options, run) == expected);
  options.context_size = 257;
  EXPECT_FALSE(outcome_of(options, run) == expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, ContextStretchTest,
                         testing::Values(DeviceChoice::kCpu, DeviceChoice::kCuda),
                         [](const testing::TestParamInfo<DeviceChoice>& info) {
                           return info.param == DeviceChoice::kCpu ? "cpu" : "cuda";
                         });

}  // namespace
}  // namespace tessera
