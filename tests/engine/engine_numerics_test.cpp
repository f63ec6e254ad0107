// Logits that no token should come from: not finite, or of tokens that do not exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/engine.h"
#include "tests/engine/reciting_model.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Lt;

constexpr RunAhead kBothWays[] = {RunAhead::kNever, RunAhead::kAlways};

// The alphabet, where reading `poison` makes the model compute with `value`.
ModelFixture& poison(ModelFixture& model, char poison, float value) {
  HostWeights weights = model.read_weights();
  make_reciting(weights, alphabet_texts());
  row(weights.at("model.embed_tokens.weight"), byte_token(poison))[5] = value;
  model.write_weights(weights);
  return model;
}

TEST(EngineNumerics, NonFiniteLogitsEndTheAnswerAndSayWhere) {
  for (const float value : {kNaN, std::numeric_limits<float>::infinity()}) {
    for (const RunAhead run_ahead : kBothWays) {
      ModelFixture model;
      EngineOptions options = poison(model, 'F', value).options();
      options.run_ahead = run_ahead;
      const auto engine = Engine::load(options);
      const auto sequence = engine->create_sequence();
      const auto result = engine->generate(*sequence, byte_tokens("ABC"), {});
      EXPECT_EQ(result.stop_reason, StopReason::kNonFiniteLogits);
      EXPECT_EQ(finish_reason(result.stop_reason), "error");
      EXPECT_EQ(result.text, "DEF") << "what came before is kept";
      EXPECT_THAT(result.error, AllOf(HasSubstr("non-finite"), HasSubstr("position 5")));
    }
  }
}

TEST(EngineNumerics, NonFiniteLogitsInThePromptSayWhere) {
  ModelFixture model;
  const auto engine = Engine::load(poison(model, 'F', kNaN).options());
  const auto sequence = engine->create_sequence();
  const auto result = engine->generate(*sequence, byte_tokens("DEF"), {});
  EXPECT_EQ(result.stop_reason, StopReason::kNonFiniteLogits);
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_THAT(result.error, HasSubstr("position 2"));
}

TEST(EngineNumerics, OtherSequencesGoOn) {
  ModelFixture model;
  EngineOptions options = poison(model, 'F', kNaN).options();
  options.max_sequences = 3;
  for (const RunAhead run_ahead : kBothWays) {
    options.run_ahead = run_ahead;
    const auto engine = Engine::load(options);
    const SamplingParams params = {.max_tokens = 100};
    const auto failing = engine->create_sequence();
    const auto before = engine->create_sequence();
    const auto after = engine->create_sequence();
    engine->submit(*before, byte_tokens("~"), {.max_tokens = 20});
    engine->submit(*failing, byte_tokens("A"), params);
    engine->submit(*after, byte_tokens("0"), params);
    while (engine->step()) {
    }
    EXPECT_EQ(engine->result(*failing).stop_reason, StopReason::kNonFiniteLogits);
    EXPECT_EQ(engine->result(*before).text, "éabcdefghijklmnopqr");
    EXPECT_EQ(engine->result(*after).text.substr(0, 12), "123456789012");
    EXPECT_EQ(engine->result(*after).tokens.size(), 100u);
  }
}

// The pages of the failed sequence hold NaN beyond what their next owner has written.
TEST(EngineNumerics, TheNextOwnerOfThePagesIsUnharmed) {
  ModelFixture model;
  const auto engine = Engine::load(poison(model, 'F', kNaN).options());
  const auto failing = engine->create_sequence();
  const auto failed =
      engine->generate(*failing, byte_tokens("F" + std::string(150, 'A')), {.max_tokens = 1});
  EXPECT_EQ(failed.stop_reason, StopReason::kNonFiniteLogits);
  for (const char* const prompt : {"0", "0123", "012345678901234567890"}) {
    const auto next = engine->create_sequence();
    const auto result = engine->generate(*next, byte_tokens(prompt), {.max_tokens = 20});
    EXPECT_EQ(result.stop_reason, StopReason::kMaxTokens) << result.error;
  }
}

// A vocabulary padded from 320 to 336 whose padding would win every draw.
TEST(EngineNumerics, PaddedVocabularyIsNeverSampled) {
  const ModelFixture model;
  HostWeights weights = model.read_weights();
  make_reciting(weights, alphabet_texts());
  for (const char* const name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    HostWeight& matrix = weights.at(name);
    matrix.shape = {336, 64};
    matrix.values.resize(336 * 64);
  }
  HostWeight& embedding = weights.at("model.embed_tokens.weight");
  HostWeight& lm_head = weights.at("lm_head.weight");
  for (int i = 0; i < 10; ++i) {
    std::ranges::transform(row(embedding, byte_token(static_cast<char>('0' + i))),
                           row(lm_head, 320 + i).begin(), [](float value) { return 9 * value; });
  }
  model.write_weights(weights);
  model.edit("config.json", R"("vocab_size": 320)", R"("vocab_size": 336)");

  const auto engine = Engine::load(model.options());
  const auto sequence = engine->create_sequence();
  EXPECT_EQ(engine->generate(*sequence, byte_tokens("0"), {.max_tokens = 12}).text, "123456789012");
  for (const uint64_t seed : {1, 2, 3}) {
    const auto result = engine->generate(
        *sequence, byte_tokens("0"),
        {.temperature = 100.0, .seed = seed, .max_tokens = 100, .ignore_eos = true});
    EXPECT_EQ(result.tokens.size(), 100u);
    EXPECT_THAT(result.tokens, Each(Lt(320)));
  }
}

}  // namespace
}  // namespace tessera
