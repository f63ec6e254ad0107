// How answers end, what limits them and what callers see on the way, on a model that recites the
// alphabet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/engine/reciting_model.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EngineGenerate : public testing::TestWithParam<RunAhead> {
 protected:
  EngineGenerate() {
    HostWeights weights = model_.read_weights();
    make_reciting(weights, alphabet_texts());
    model_.write_weights(weights);
  }

  EngineOptions options() const {
    EngineOptions options = model_.options();
    options.run_ahead = GetParam();
    return options;
  }

  // What comes after the prompt in a new sequence.
  GenerationResult recite(std::string_view prompt, const SamplingParams& params,
                          const GenerationCallbacks& callbacks = {}) {
    if (!engine_) engine_ = Engine::load(options());
    const auto sequence = engine_->create_sequence();
    return engine_->generate(*sequence, byte_tokens(prompt), params, callbacks);
  }

  ModelFixture model_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(EngineGenerate, EndsAtTheEndToken) {
  const auto result = recite("W", {});
  EXPECT_EQ(result.stop_reason, StopReason::kEndOfSequence);
  EXPECT_EQ(result.text, "XYZ");
  EXPECT_EQ(result.tokens, byte_tokens("XYZ"));
  EXPECT_EQ(result.prompt_tokens, 1);
  EXPECT_EQ(result.cached_prompt_tokens, 0);
}

TEST_P(EngineGenerate, AnAnswerMayBeEmpty) {
  const auto result = recite("Z", {});
  EXPECT_EQ(result.stop_reason, StopReason::kEndOfSequence);
  EXPECT_EQ(result.text, "");
  EXPECT_TRUE(result.tokens.empty());
}

TEST_P(EngineGenerate, ACallbackThatThrowsEndsItsOwnAnswerAndNothingElse) {
  EngineOptions two = options();
  two.max_sequences = 2;
  engine_ = Engine::load(two);
  const auto throwing = engine_->create_sequence();
  const auto company = engine_->create_sequence();
  engine_->submit(*company, byte_tokens("A"), {});
  const GenerationCallbacks callbacks{.on_text = [](std::string_view) { throw Error("enough"); }};
  EXPECT_STREQ(
      error_of([&] { engine_->generate(*throwing, byte_tokens("A"), {}, callbacks); }).what(),
      "enough");
  EXPECT_TRUE(engine_->is_finished(*throwing));
  EXPECT_EQ(engine_->result(*throwing).stop_reason, StopReason::kCancelled);
  EXPECT_FALSE(engine_->is_finished(*company));
  EXPECT_EQ(engine_->generate(*throwing, byte_tokens("W"), {}).text, "XYZ");
  while (engine_->step()) {
  }
  EXPECT_EQ(engine_->result(*company).text, "BCDEFGHIJKLMNOPQRSTUVWXYZ");
}

TEST_P(EngineGenerate, GoesOnPastTheEndTokenWhenAsked) {
  const auto result = recite("X", {.max_tokens = 15, .ignore_eos = true});
  EXPECT_EQ(result.stop_reason, StopReason::kMaxTokens);
  EXPECT_EQ(result.text, "YZ012345678901");
  EXPECT_EQ(result.tokens.size(), 15u);
  EXPECT_EQ(result.tokens[2], kEndOfSequence);
}

TEST_P(EngineGenerate, MaxTokensIsExact) {
  for (const int64_t max_tokens : {1, 2, 25}) {
    const auto result = recite("A", {.max_tokens = max_tokens});
    EXPECT_EQ(result.stop_reason, StopReason::kMaxTokens);
    EXPECT_EQ(result.text, std::string("BCDEFGHIJKLMNOPQRSTUVWXYZ").substr(0, max_tokens));
  }
}

TEST_P(EngineGenerate, TheEndTokenNeedsNoRoomInMaxTokens) {
  const auto result = recite("W", {.max_tokens = 4});
  EXPECT_EQ(result.stop_reason, StopReason::kEndOfSequence);
  EXPECT_EQ(result.text, "XYZ");
}

TEST_P(EngineGenerate, TextEndsBeforeTheStopString) {
  EXPECT_EQ(recite("A", {.stop = {"DEF"}}).text, "BC");
  EXPECT_EQ(recite("A", {.stop = {"B"}}).text, "");
  EXPECT_EQ(recite("A", {.stop = {"F", "DE"}}).text, "BC");  // the first to be complete
  EXPECT_EQ(recite("A", {.stop = {"XYZ"}}).text, "BCDEFGHIJKLMNOPQRSTUVW");
  EXPECT_EQ(recite("A", {.stop = {"DEF"}}).stop_reason, StopReason::kStopString);
}

TEST_P(EngineGenerate, StopStringsThatNeverCompleteAreShown) {
  const auto cut = recite("A", {.max_tokens = 4, .stop = {"DEF"}});
  EXPECT_EQ(cut.stop_reason, StopReason::kMaxTokens);
  EXPECT_EQ(cut.text, "BCDE");
  const auto ended = recite("V", {.stop = {"YZ!"}});
  EXPECT_EQ(ended.stop_reason, StopReason::kEndOfSequence);
  EXPECT_EQ(ended.text, "WXYZ");
}

TEST_P(EngineGenerate, StopStringsInThePromptDoNotCount) {
  EXPECT_EQ(recite("ABC", {.max_tokens = 3, .stop = {"BC", "CD"}}).text, "DEF");
}

TEST_P(EngineGenerate, StreamsTheTextOfTheResult) {
  std::string streamed;
  const auto on_text = [&](std::string_view text) {
    streamed += text;
    EXPECT_EQ(streamed.find('D'), std::string::npos) << "a part of the stop string was shown";
  };
  const auto result = recite("A", {.stop = {"DEF"}}, {.on_text = on_text});
  EXPECT_EQ(streamed, "BC");
  EXPECT_EQ(result.text, "BC");
}

TEST_P(EngineGenerate, StreamsWholeCharacters) {
  std::vector<std::string> pieces;
  const auto on_text = [&](std::string_view text) { pieces.emplace_back(text); };
  EXPECT_EQ(recite("~", {.max_tokens = 4}, {.on_text = on_text}).text, "éab");
  EXPECT_THAT(pieces, ElementsAre("é", "a", "b"));
  EXPECT_EQ(recite("~", {.max_tokens = 1}).text, "\uFFFD");  // cut inside the character
  EXPECT_EQ(recite("~", {.stop = {"é"}}).text, "");
}

TEST_P(EngineGenerate, RestrictiveSamplingIsGreedy) {
  const SamplingParams hot = {.temperature = 100.0, .max_tokens = 20};
  const std::string greedy = recite("A", {.max_tokens = 20}).text;
  for (const uint64_t seed : {0, 1, 2}) {
    SamplingParams top_k = hot, top_p = hot, min_p = hot;
    top_k.top_k = 1;
    top_p.top_p = 1e-6;
    min_p.min_p = 1.0;
    for (SamplingParams params : {top_k, top_p, min_p}) {
      params.seed = seed;
      EXPECT_EQ(recite("A", params).text, greedy);
    }
    SamplingParams free = hot;
    free.seed = seed;
    EXPECT_NE(recite("A", free).text, greedy);
  }
}

TEST_P(EngineGenerate, PenaltiesLookAtTheirWindow) {
  // Counting repeats every ten tokens; a window of nine has forgotten the one that comes next.
  SamplingParams params = {.repetition_penalty = 100.0, .penalty_window = 9, .max_tokens = 25};
  EXPECT_EQ(recite("0", params).text, "1234567890123456789012345");
  for (const int64_t window : {10, 0}) {
    params.penalty_window = window;
    const std::string text = recite("0", params).text;
    EXPECT_EQ(text.substr(0, 9), "123456789");
    EXPECT_NE(text.substr(9, 1), "0") << "window " << window;
  }
}

TEST_P(EngineGenerate, ContextLimitsAreExact) {
  EngineOptions small = options();
  small.context_size = 32;
  engine_ = Engine::load(small);
  EXPECT_EQ(engine_->context_size(), 32);
  const std::string digits = "0123456789012345678901234567890123";

  const auto last = recite(digits.substr(0, 31), {});
  EXPECT_EQ(last.stop_reason, StopReason::kContextFull);
  EXPECT_EQ(last.text, "1");
  EXPECT_EQ(recite(digits.substr(0, 30), {}).text, "01");
  for (const size_t length : {32, 33}) {
    const Error error = error_of([&] { recite(digits.substr(0, length), {}); });
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(length)));
    EXPECT_THAT(error.what(), HasSubstr("32"));
  }

  const auto filled = recite(digits.substr(0, 20), {.max_tokens = 12});
  EXPECT_EQ(filled.stop_reason, StopReason::kMaxTokens);
  EXPECT_EQ(filled.text, "012345678901");
  const Error error = error_of([&] { recite(digits.substr(0, 20), {.max_tokens = 13}); });
  EXPECT_THAT(error.what(), HasSubstr("20"));
  EXPECT_THAT(error.what(), HasSubstr("13"));
  EXPECT_THAT(error.what(), HasSubstr("32"));
}

TEST_P(EngineGenerate, FillsTheContextOfTheModel) {
  const auto result = recite("0", {});
  EXPECT_EQ(result.stop_reason, StopReason::kContextFull);
  EXPECT_EQ(result.tokens.size(), 255u);
}

TEST_P(EngineGenerate, RefusesPromptsItCannotRead) {
  const auto engine = Engine::load(options());
  const auto sequence = engine->create_sequence();
  const auto generate = [&](const std::vector<TokenId>& prompt) {
    return error_of([&] { engine->generate(*sequence, prompt, {}); });
  };
  EXPECT_THAT(generate({}).what(), HasSubstr("empty"));
  EXPECT_THAT(generate({1, 320}).what(), HasSubstr("320"));
  EXPECT_THAT(generate({-1}).what(), HasSubstr("-1"));
  const auto logits = [&](const std::vector<TokenId>& prompt) {
    return error_of([&] { engine->prompt_logits(prompt); });
  };
  EXPECT_THAT(logits({}).what(), HasSubstr("empty"));
  EXPECT_THAT(logits({1, 320}).what(), HasSubstr("320"));
  EXPECT_THAT(logits(std::vector<TokenId>(257, 1)).what(), HasSubstr("257"));
  EXPECT_EQ(engine->generate(*sequence, byte_tokens("X"), {}).text, "YZ") << "and goes on";
}

TEST_P(EngineGenerate, ReportsPrefillProgress) {
  EngineOptions chunked = options();
  chunked.prefill_chunk = 16;
  engine_ = Engine::load(chunked);
  std::vector<std::pair<int64_t, int64_t>> progress;
  const auto on_prefill = [&](int64_t done, int64_t total) { progress.emplace_back(done, total); };
  recite(std::string(40, 'A'), {.max_tokens = 3}, {.on_prefill = on_prefill});
  EXPECT_THAT(progress, ElementsAre(std::pair(16, 40), std::pair(32, 40), std::pair(40, 40)));
}

TEST_P(EngineGenerate, CanBeCancelledDuringPrefill) {
  EngineOptions chunked = options();
  chunked.prefill_chunk = 16;
  const auto engine = Engine::load(chunked);
  const auto sequence = engine->create_sequence();
  const std::vector<TokenId> prompt = byte_tokens(std::string(40, 'A'));
  int64_t done = 0;
  const GenerationCallbacks callbacks = {
      .on_prefill = [&](int64_t tokens, int64_t) { done = tokens; },
      .is_cancelled = [&] { return done >= 32; }};
  const auto cancelled = engine->generate(*sequence, prompt, {}, callbacks);
  EXPECT_EQ(cancelled.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(cancelled.tokens.empty());
  EXPECT_EQ(done, 32);

  const auto again = engine->generate(*sequence, prompt, {.max_tokens = 3});
  EXPECT_EQ(again.cached_prompt_tokens, 32) << "what was computed is not lost";
  EXPECT_EQ(again.text, "BCD");
}

TEST_P(EngineGenerate, CanBeCancelledDuringDecode) {
  std::string streamed;
  const GenerationCallbacks callbacks = {
      .on_text = [&](std::string_view text) { streamed += text; },
      .is_cancelled = [&] { return streamed.size() >= 3; }};
  const auto result = recite("A", {}, callbacks);
  EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result.text, "BCD");
  EXPECT_EQ(result.tokens, byte_tokens("BCD"));
  EXPECT_EQ(finish_reason(result.stop_reason), "cancelled");
}

TEST_P(EngineGenerate, CancellingOneLeavesTheOthers) {
  EngineOptions two = options();
  two.max_sequences = 2;
  const auto engine = Engine::load(two);
  const auto cancelled = engine->create_sequence();
  const auto kept = engine->create_sequence();
  engine->submit(*cancelled, byte_tokens("0"), {}, {.is_cancelled = [] { return true; }});
  engine->submit(*kept, byte_tokens("A"), {});
  while (engine->step()) {
  }
  EXPECT_EQ(engine->result(*cancelled).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(engine->result(*kept).text, "BCDEFGHIJKLMNOPQRSTUVWXYZ");
}

TEST_P(EngineGenerate, ASequenceMayBeDestroyedWhileItRuns) {
  EngineOptions two = options();
  two.max_sequences = 2;
  const auto engine = Engine::load(two);
  auto destroyed = engine->create_sequence();
  const auto kept = engine->create_sequence();
  engine->submit(*destroyed, byte_tokens("0"), {});
  engine->submit(*kept, byte_tokens("A"), {});
  engine->step();
  destroyed.reset();
  while (engine->step()) {
  }
  EXPECT_EQ(engine->result(*kept).text, "BCDEFGHIJKLMNOPQRSTUVWXYZ");
}

// A cache for one running sequence serves any number in turn.
TEST_P(EngineGenerate, UnusedCachesMakeRoom) {
  const auto engine = Engine::load(options());
  std::vector<SequencePtr> sequences;
  for (int i = 0; i < 5; ++i) {
    sequences.push_back(engine->create_sequence());
    const auto result =
        engine->generate(*sequences.back(), byte_tokens(std::string(200, 'A')), {.max_tokens = 3});
    EXPECT_EQ(result.text, "BCD");
  }
  EXPECT_EQ(engine->prompt_logits(byte_tokens(std::string(200, 'A'))).size(), 200u * 320u);
  const auto again =
      engine->generate(*sequences[0], byte_tokens(std::string(200, 'A')), {.max_tokens = 3});
  EXPECT_EQ(again.text, "BCD");
  EXPECT_EQ(again.cached_prompt_tokens, 0);
}

TEST_P(EngineGenerate, ACacheLostWhileWaitingIsNotCounted) {
  const auto engine = Engine::load(options());
  const std::vector<TokenId> prompt = byte_tokens(std::string(200, 'A'));
  const auto first = engine->create_sequence();
  const auto second = engine->create_sequence();
  engine->generate(*second, prompt, {.max_tokens = 1});
  engine->submit(*first, byte_tokens(std::string(200, 'B')), {.max_tokens = 1});
  engine->submit(*second, prompt, {.max_tokens = 1});  // waits, and its pages go to the first
  while (engine->step()) {
  }
  EXPECT_EQ(engine->result(*second).text, "B");
  EXPECT_EQ(engine->result(*second).cached_prompt_tokens, 0);
}

TEST_P(EngineGenerate, SubmittingTwiceIsAnError) {
  const auto engine = Engine::load(options());
  const auto sequence = engine->create_sequence();
  engine->submit(*sequence, byte_tokens("A"), {});
  EXPECT_THAT(error_of([&] { engine->submit(*sequence, byte_tokens("A"), {}); }).what(),
              HasSubstr("generating"));
}

TEST_P(EngineGenerate, AllocatesNothingAfterLoading) {
  const auto engine = Engine::load(options());
  const uint64_t before = engine->allocated_bytes();
  EXPECT_EQ(before, engine->memory_plan().total_bytes());
  const auto sequence = engine->create_sequence();
  engine->generate(*sequence, byte_tokens("0"), {});
  EXPECT_EQ(engine->allocated_bytes(), before);
}

INSTANTIATE_TEST_SUITE_P(, EngineGenerate, testing::Values(RunAhead::kNever, RunAhead::kAlways),
                         [](const auto& param) {
                           return param.param == RunAhead::kAlways ? "ahead" : "plain";
                         });

}  // namespace
}  // namespace tessera
