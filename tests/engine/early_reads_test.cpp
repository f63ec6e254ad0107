// Whole forward passes with kernels that begin early and with kernels that wait for each other: the
// same bits. An operation that is put where its inputs break the rules of early reads
// (kernels/operations.h) would give others, sooner or later.
#ifdef TESSERA_CUDA

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda_status.h"
#include "tests/engine/model_fixture.h"

namespace tessera {
namespace {

class SerialLaunches {
 public:
  SerialLaunches() { launches_serially = true; }
  ~SerialLaunches() { launches_serially = false; }
};

class EarlyReadsTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kMostSequences = 130;

  void SetUp() override {
    if (cuda_status().num_devices == 0) GTEST_SKIP() << cuda_status().problem;
    engine_ = load();
  }

  static std::unique_ptr<Engine> load() {
    ModelFixture model(GetParam());
    EngineOptions options = model.options();
    options.device = DeviceChoice::kCuda;
    // A prompt behind cached pages is shorter, and other kernels multiply what is left of it.
    options.prefix_cache = false;
    options.max_sequences = kMostSequences;
    return Engine::load(options);
  }

  static std::vector<TokenId> prompt(int64_t num_tokens) {
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i < num_tokens; ++i) {
      tokens.push_back(static_cast<TokenId>(3 + (i * 37 + num_tokens) % 250));
    }
    return tokens;
  }
  static std::vector<TokenId> answer(Engine& engine, int64_t num_tokens) {
    SamplingParams params;
    params.max_tokens = 40;
    params.ignore_eos = true;
    const SequencePtr sequence = engine.create_sequence();
    return engine.generate(*sequence, prompt(num_tokens), params).tokens;
  }

  std::unique_ptr<Engine> engine_;
};

// 1 to 8 tokens take the GEMV, up to 64 the skinny products, more cuBLAS.
TEST_P(EarlyReadsTest, LogitsAreTheSameWithSerialLaunches) {
  for (const int64_t num_tokens : {1, 5, 8, 9, 33, 64, 65, 200}) {
    std::vector<float> expected;
    {
      const SerialLaunches serial;
      expected = engine_->prompt_logits(prompt(num_tokens));
    }
    for (int repeat = 0; repeat < 5; ++repeat) {
      EXPECT_TRUE(engine_->prompt_logits(prompt(num_tokens)) == expected)
          << num_tokens << " tokens, repeat " << repeat;
    }
  }
}

// Recorded steps stay as they were recorded, so serial launches have an engine of their own.
TEST_P(EarlyReadsTest, AnswersAreTheSameWithSerialLaunches) {
  const std::unique_ptr<Engine> serial_engine = load();
  for (const int64_t num_tokens : {1, 33, 150}) {
    std::vector<TokenId> expected;
    {
      const SerialLaunches serial;
      expected = answer(*serial_engine, num_tokens);
    }
    EXPECT_EQ(answer(*engine_, num_tokens), expected) << num_tokens << " tokens";
  }
}

// Their steps are recorded; 1 to 8 sequences of `one_kernel` run in one kernel.
TEST_P(EarlyReadsTest, AnswersInCompanyAreTheSameWithSerialLaunches) {
  const auto answers = [](Engine& engine, int64_t num_sequences) {
    std::vector<SequencePtr> sequences;
    for (int64_t i = 0; i < num_sequences; ++i) {
      sequences.push_back(engine.create_sequence());
      SamplingParams params;
      params.max_tokens = 24 + i % 5;  // they leave one after the other
      params.ignore_eos = true;
      engine.submit(*sequences.back(), prompt(5 + i % 40), params);
    }
    while (engine.step()) {
    }
    std::vector<std::vector<TokenId>> tokens;
    for (const SequencePtr& sequence : sequences) {
      tokens.push_back(engine.result(*sequence).tokens);
    }
    return tokens;
  };
  const std::unique_ptr<Engine> serial_engine = load();
  for (const int64_t num_sequences : {4, 12, 70, 130}) {
    std::vector<std::vector<TokenId>> expected;
    {
      const SerialLaunches serial;
      expected = answers(*serial_engine, num_sequences);
    }
    EXPECT_EQ(answers(*engine_, num_sequences), expected) << num_sequences << " sequences";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EarlyReadsTest, testing::Values("one_kernel", "gqa_d128"));

}  // namespace
}  // namespace tessera

#endif
