// Many requests at once, on a model of random weights whose tokens depend on all that its KV pages
// hold. On the CPU, where a token does not depend on what is computed beside it.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/engine/reciting_model.h"

namespace tessera {
namespace {

constexpr int kRequests = 64;

class EngineBatch : public testing::TestWithParam<RunAhead> {
 protected:
  EngineOptions options() const {
    EngineOptions options = model_.options();
    options.run_ahead = GetParam();
    options.page_size = 16;
    options.max_sequences = 0;
    return options;
  }

  // Every second begins with the same 50 tokens; each fourth is drawn by chance.
  static std::vector<TokenId> prompt(int index) {
    std::string text;
    if (index % 2 == 0) text = "The instruction that comes before every question. ";
    for (int i = 0; i <= index % 23; ++i) text += static_cast<char>('!' + (index * 7 + i * 5) % 90);
    return byte_tokens(text);
  }
  static SamplingParams params(int index) {
    SamplingParams params = {.max_tokens = 8 + index % 40, .ignore_eos = true};
    if (index % 4 == 3) {
      params.temperature = 1.0;
      params.seed = static_cast<uint64_t>(index);
    }
    if (index % 8 == 5) params.repetition_penalty = 1.3;
    return params;
  }

  std::vector<std::vector<TokenId>> answers_alone() const {
    EngineOptions one = options();
    one.max_sequences = 1;
    one.prefix_cache = false;
    const auto engine = Engine::load(one);
    std::vector<std::vector<TokenId>> answers;
    for (int i = 0; i < kRequests; ++i) {
      const auto sequence = engine->create_sequence();
      answers.push_back(engine->generate(*sequence, prompt(i), params(i)).tokens);
    }
    return answers;
  }
  static std::vector<std::vector<TokenId>> answers_together(Engine& engine) {
    std::vector<SequencePtr> sequences;
    for (int i = 0; i < kRequests; ++i) {
      sequences.push_back(engine.create_sequence());
      engine.submit(*sequences.back(), prompt(i), params(i));
    }
    while (engine.step()) {
    }
    std::vector<std::vector<TokenId>> answers;
    for (const SequencePtr& sequence : sequences) {
      EXPECT_EQ(engine.result(*sequence).stop_reason, StopReason::kMaxTokens);
      answers.push_back(engine.result(*sequence).tokens);
    }
    return answers;
  }

  ModelFixture model_;
};

TEST_P(EngineBatch, AnswersAreThoseThatRequestsGetAlone) {
  const auto alone = answers_alone();
  for (const bool prefix_cache : {true, false}) {
    for (const int64_t max_pages : {0, 40}) {
      SCOPED_TRACE(concat(prefix_cache ? "with" : "without", " a prefix cache, ", max_pages));
      EngineOptions many = options();
      many.prefix_cache = prefix_cache;
      many.max_pages = max_pages;
      const auto engine = Engine::load(many);
      EXPECT_EQ(answers_together(*engine), alone);
      const ServingStatistics statistics = engine->statistics();
      EXPECT_EQ(statistics.num_preemptions > 0, max_pages > 0);
      EXPECT_EQ(statistics.prompt_tokens_cached > 0, prefix_cache);
      EXPECT_EQ(statistics.num_pages, max_pages > 0 ? max_pages : kRequests * 16);
      EXPECT_EQ(answers_together(*engine), alone) << "and once more, from pages left behind";
    }
  }
}

TEST_P(EngineBatch, StepsOfFewTokensAnswerTheSame) {
  const auto alone = answers_alone();
  EngineOptions many = options();
  many.max_sequences = 7;
  many.prefill_chunk = 16;
  EXPECT_EQ(answers_together(*Engine::load(many)), alone);
}

TEST_P(EngineBatch, ChoosesHowManyRunAtOnce) {
  const auto engine = Engine::load(options());
  EXPECT_EQ(engine->memory_plan().limits.max_sequences, kCpuMaxSequences);
  EXPECT_EQ(engine->context_size(), 256) << "as long as one alone could be";
}

TEST_P(EngineBatch, CancelsBetweenSteps) {
  const auto engine = Engine::load(options());
  const auto cancelled = engine->create_sequence();
  const auto kept = engine->create_sequence();
  engine->submit(*cancelled, prompt(0), {.ignore_eos = true});
  engine->submit(*kept, prompt(1), params(1));
  engine->step();
  engine->cancel(*cancelled);
  while (engine->step()) {
  }
  EXPECT_EQ(engine->result(*cancelled).stop_reason, StopReason::kCancelled);
  EXPECT_LE(engine->result(*cancelled).tokens.size(), 2u);
  EXPECT_EQ(std::ssize(engine->result(*kept).tokens), params(1).max_tokens);
}

INSTANTIATE_TEST_SUITE_P(, EngineBatch, testing::Values(RunAhead::kNever, RunAhead::kAlways),
                         [](const auto& param) {
                           return param.param == RunAhead::kAlways ? "ahead" : "plain";
                         });

}  // namespace
}  // namespace tessera
