#include "engine/serving/generation.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/engine/serving/byte_tokenizer.h"

namespace tessera {
namespace {

constexpr TokenId kEndOfText = 2;

class GenerationTest : public testing::Test {
 protected:
  Generation& start(const SamplingParams& params, const PromptSize& prompt = {.num_tokens = 5},
                    const GenerationCallbacks& callbacks = {}) {
    return generation_.emplace(*tokenizer_, end_rule_, prompt, params, callbacks);
  }
  // Takes the bytes one by one until one ends the answer; how many it took.
  int append(std::string_view bytes) {
    int count = 0;
    for (const TokenId token : tokens_of(bytes)) {
      if (generation_->is_finished()) break;
      generation_->append(token);
      ++count;
    }
    return count;
  }
  StopReason reason() const { return generation_->result().stop_reason; }
  const std::string& text() const { return generation_->result().text; }

  std::unique_ptr<Tokenizer> tokenizer_ = load_byte_tokenizer();
  EndRule end_rule_ = {.stop_tokens = {kEndOfText, token_of('$')}, .context_size = 20};
  std::optional<Generation> generation_;
};

TEST_F(GenerationTest, EndsAtAStopTokenWhichIsNoPartOfTheAnswer) {
  start({});
  EXPECT_EQ(append("abc"), 3);
  EXPECT_FALSE(generation_->is_finished());
  EXPECT_FALSE(generation_->append(kEndOfText));
  EXPECT_TRUE(generation_->is_finished());
  EXPECT_EQ(reason(), StopReason::kEndOfSequence);
  EXPECT_EQ(text(), "abc");
  EXPECT_EQ(generation_->result().tokens, tokens_of("abc"));
}

TEST_F(GenerationTest, GoesOnPastStopTokensWhenToldTo) {
  start({.ignore_eos = true});
  EXPECT_TRUE(generation_->append(token_of('$')));
  EXPECT_FALSE(generation_->is_finished());
  EXPECT_EQ(text(), "$");
}

TEST_F(GenerationTest, BarsEndTokensBeforeMinTokens) {
  start({.min_tokens = 2});
  EXPECT_EQ(generation_->barred_tokens(0).size(), 2u);
  EXPECT_EQ(generation_->barred_tokens(1).size(), 2u);
  EXPECT_TRUE(generation_->barred_tokens(2).empty());
  start({.min_tokens = 2, .ignore_eos = true});
  EXPECT_TRUE(generation_->barred_tokens(0).empty()) << "they end nothing";
}

TEST_F(GenerationTest, StopStringsCountBehindMinTokens) {
  start({.min_tokens = 4, .stop = {"ab"}});
  EXPECT_EQ(append("abababab"), 6);
  EXPECT_EQ(reason(), StopReason::kStopString);
  EXPECT_EQ(text(), "abab");
  start({.min_tokens = 4, .stop = {"ba"}});
  EXPECT_EQ(append("abababab"), 5) << "one may begin before";
  EXPECT_EQ(text(), "aba");
}

TEST_F(GenerationTest, AStopStringMayBeWhatIsLeftAtTheEnd) {
  start({.max_tokens = 1, .stop = {"\uFFFD"}});
  append("\xC3");
  EXPECT_EQ(reason(), StopReason::kStopString);
  EXPECT_EQ(text(), "");
  start({.max_tokens = 1, .min_tokens = 5, .stop = {"\uFFFD"}});
  append("\xC3");
  EXPECT_EQ(reason(), StopReason::kMaxTokens);
  EXPECT_EQ(text(), "\uFFFD");
}

TEST_F(GenerationTest, EndsAfterMaxTokens) {
  start({.max_tokens = 3});
  EXPECT_EQ(generation_->max_length(), 8);
  EXPECT_EQ(append("abcdef"), 3);
  EXPECT_EQ(reason(), StopReason::kMaxTokens);
  EXPECT_EQ(text(), "abc");
}

TEST_F(GenerationTest, AStopTokenWinsOverMaxTokens) {
  start({.max_tokens = 3});
  EXPECT_EQ(append("ab$"), 3);
  EXPECT_EQ(reason(), StopReason::kEndOfSequence);
}

TEST_F(GenerationTest, EndsWhenTheContextIsFull) {
  start({});
  EXPECT_EQ(generation_->max_length(), 20);
  EXPECT_EQ(append("0123456789abcdefghij"), 15);
  EXPECT_EQ(reason(), StopReason::kContextFull);
}

TEST_F(GenerationTest, MaxTokensThatFillTheContextAreTheReason) {
  start({.max_tokens = 15});
  append("0123456789abcdefghij");
  EXPECT_EQ(reason(), StopReason::kMaxTokens);
  start({.max_tokens = 16});
  append("0123456789abcdefghij");
  EXPECT_EQ(reason(), StopReason::kContextFull);
}

TEST_F(GenerationTest, FindsAStopStringAcrossTokensAndShowsNoneOfIt) {
  std::string shown;
  start({.stop = {"xyz"}}, {.num_tokens = 5},
        {.on_text = [&](std::string_view text) { shown += text; }});
  EXPECT_EQ(append("abxyxy"), 6);
  EXPECT_EQ(shown, "abxy") << "the second could still become one";
  EXPECT_EQ(append("zq"), 1);
  EXPECT_EQ(reason(), StopReason::kStopString);
  EXPECT_EQ(shown, "abxy");
  EXPECT_EQ(text(), "abxy");
  EXPECT_EQ(generation_->result().tokens, tokens_of("abxyxyz"));
}

TEST_F(GenerationTest, AStopStringWinsOverMaxTokens) {
  start({.max_tokens = 3, .stop = {"bc"}});
  append("abc");
  EXPECT_EQ(reason(), StopReason::kStopString);
}

TEST_F(GenerationTest, ShowsAtTheEndWhatItHeldBack) {
  std::vector<std::string> shown;
  const GenerationCallbacks callbacks = {
      .on_text = [&](std::string_view text) { shown.emplace_back(text); }};
  start({.max_tokens = 2, .stop = {"bcd"}}, {.num_tokens = 5}, callbacks);
  append("ab");
  EXPECT_EQ(shown, (std::vector<std::string>{"a", "b"}));

  shown.clear();
  start({.max_tokens = 2}, {.num_tokens = 5}, callbacks);
  append("a\xC3");
  EXPECT_EQ(shown, (std::vector<std::string>{"a", "\uFFFD"})) << "half a character";
}

TEST_F(GenerationTest, StreamsWholeCharacters) {
  std::vector<std::string> shown;
  start({}, {.num_tokens = 5},
        {.on_text = [&](std::string_view text) { shown.emplace_back(text); }});
  append("é!");
  EXPECT_EQ(shown, (std::vector<std::string>{"é", "!"}));
}

TEST_F(GenerationTest, IsCancelledFromTheFirstYesOn) {
  int num_asked = 0;
  start({}, {.num_tokens = 5}, {.is_cancelled = [&] { return ++num_asked == 2; }});
  EXPECT_FALSE(generation_->is_cancelled());
  EXPECT_TRUE(generation_->is_cancelled());
  EXPECT_TRUE(generation_->is_cancelled());
  EXPECT_EQ(num_asked, 2);
  EXPECT_FALSE(generation_->is_finished()) << "which is for others to do";
  start({});
  EXPECT_FALSE(generation_->is_cancelled());
}

TEST_F(GenerationTest, FinishesWithAReasonAndAnError) {
  start({});
  append("a");
  generation_->finish(StopReason::kNonFiniteLogits, "what and where");
  EXPECT_TRUE(generation_->is_finished());
  EXPECT_EQ(reason(), StopReason::kNonFiniteLogits);
  EXPECT_EQ(generation_->result().error, "what and where");
}

TEST_F(GenerationTest, IsAbandonedWithoutAWord) {
  std::string shown;
  start({.stop = {"bcd"}}, {.num_tokens = 5},
        {.on_text = [&](std::string_view text) { shown += text; }});
  append("ab");
  generation_->abandon();
  EXPECT_TRUE(generation_->is_finished());
  EXPECT_EQ(reason(), StopReason::kCancelled);
  EXPECT_EQ(shown, "a");
}

TEST_F(GenerationTest, CountsThePrompt) {
  std::vector<std::pair<int64_t, int64_t>> progress;
  start({}, {.num_tokens = 12, .num_cached = 4},
        {.on_prefill = [&](int64_t done, int64_t total) { progress.emplace_back(done, total); }});
  EXPECT_FALSE(generation_->result().is_prompt_computed());
  generation_->advance(5);
  generation_->advance(3);
  append("a");
  generation_->advance(1);  // of the answer
  EXPECT_EQ(progress, (std::vector<std::pair<int64_t, int64_t>>{{9, 12}, {12, 12}}));
  EXPECT_EQ(generation_->result().prompt_tokens, 12);
  EXPECT_EQ(generation_->result().cached_prompt_tokens, 4);
  EXPECT_EQ(generation_->result().computed_prompt_tokens, 8);
  EXPECT_TRUE(generation_->result().is_prompt_computed());
}

TEST_F(GenerationTest, CountsTheCacheThatItBeginsWith) {
  start({}, {.num_tokens = 12, .num_cached = 4});
  generation_->begin_computing(0);
  generation_->advance(12);
  EXPECT_EQ(generation_->result().cached_prompt_tokens, 0);
  EXPECT_TRUE(generation_->result().is_prompt_computed());
}

TEST_F(GenerationTest, CountsAPromptThatIsComputedAnewOnce) {
  start({}, {.num_tokens = 12});
  generation_->begin_computing(0);
  generation_->advance(7);
  generation_->begin_computing(4);
  generation_->advance(8);
  EXPECT_EQ(generation_->result().cached_prompt_tokens, 4);
  EXPECT_EQ(generation_->result().computed_prompt_tokens, 8);
  append("a");
  generation_->begin_computing(0);
  generation_->advance(13);
  EXPECT_TRUE(generation_->result().is_prompt_computed()) << "as it was once";
}

TEST_F(GenerationTest, ItsClocksDoNotRunBackwards) {
  start({});
  EXPECT_EQ(generation_->result().prefill_seconds, 0.0);
  generation_->advance(5);
  const double until_prompt = generation_->result().prefill_seconds;
  append("a");
  const double until_first_token = generation_->result().prefill_seconds;
  EXPECT_GE(until_first_token, until_prompt);
  EXPECT_EQ(generation_->result().decode_seconds, 0.0) << "which begins with the first token";
  append("b");
  EXPECT_EQ(generation_->result().prefill_seconds, until_first_token);
  EXPECT_GE(generation_->result().decode_seconds, 0.0);
}

TEST(GenerationResult, SpeedsCountWhatWasComputed) {
  GenerationResult result = {.prompt_tokens = 12,
                             .cached_prompt_tokens = 4,
                             .computed_prompt_tokens = 8,
                             .prefill_seconds = 2.0,
                             .decode_seconds = 0.5};
  EXPECT_EQ(result.prefill_tokens_per_second(), 4.0);
  result.tokens = {1};
  EXPECT_EQ(result.decode_tokens_per_second(), 0.0) << "between which tokens?";
  result.tokens = {1, 1, 1};
  EXPECT_EQ(result.decode_tokens_per_second(), 4.0);
}

}  // namespace
}  // namespace tessera
