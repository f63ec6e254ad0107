#include "engine/text/tokenizer_json/pre_tokenizer.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/repeated.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using PreTokenizerKind = PreTokenizerStep::Kind;

PreTokenizer of_step(const PreTokenizerStep& step) {
  TokenizerJson json;
  json.pre_tokenizer = {step};
  return PreTokenizer(json);
}

PreTokenizerStep split_at(const std::string& literal, SplitBehavior behavior) {
  return {.kind = PreTokenizerKind::kSplit, .pattern = {.text = literal}, .behavior = behavior};
}

PreTokenizerStep metaspace() { return {.kind = PreTokenizerKind::kMetaspace, .replacement = "_"}; }

std::vector<std::string> words(const PreTokenizerStep& step, std::string_view text) {
  std::vector<std::string> found;
  of_step(step).split(
      text, /*first_bytes=*/1, [] {}, [&](std::string_view word) { found.emplace_back(word); });
  return found;
}

// The examples are those of the library's documentation.
TEST(PreTokenizer, MatchesAreWordsOrJoinThem) {
  const auto divided = [](SplitBehavior behavior, bool inverts = false) {
    PreTokenizerStep step = split_at("-", behavior);
    step.inverts = inverts;
    return words(step, "-the-final--countdown-");
  };
  EXPECT_THAT(divided(SplitBehavior::kIsolated),
              ElementsAre("-", "the", "-", "final", "-", "-", "countdown", "-"));
  EXPECT_THAT(divided(SplitBehavior::kRemoved), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(divided(SplitBehavior::kMergedWithPrevious),
              ElementsAre("-", "the-", "final-", "-", "countdown-"));
  EXPECT_THAT(divided(SplitBehavior::kMergedWithNext),
              ElementsAre("-the", "-final", "-", "-countdown", "-"));
  EXPECT_THAT(divided(SplitBehavior::kContiguous),
              ElementsAre("-", "the", "-", "final", "--", "countdown", "-"));
  EXPECT_THAT(divided(SplitBehavior::kRemoved, true), ElementsAre("-", "-", "-", "-", "-"));
  EXPECT_THAT(divided(SplitBehavior::kContiguous, true),
              ElementsAre("-", "the", "-", "final", "--", "countdown", "-"));
  EXPECT_THAT(divided(SplitBehavior::kMergedWithNext, true),
              ElementsAre("-", "the-", "final-", "-", "countdown-"));
}

TEST(PreTokenizer, SpacesBeginWordsOfMetaspace) {
  EXPECT_THAT(words(metaspace(), "one two  three "),
              ElementsAre("_one", "_two", "_", "_three", "_"));
  EXPECT_THAT(words(metaspace(), " one"), ElementsAre("_one"));
}

// Whoever waits for an interrupt or for progress hears of it before the whole text is divided.
TEST(PreTokenizer, WordsComeAsTheyAreFound) {
  constexpr size_t kRepetitions = 100'000;
  const std::string text = repeated("one - ", kRepetitions);
  std::vector<PreTokenizerStep> steps = {metaspace()};
  for (const SplitBehavior behavior :
       {SplitBehavior::kIsolated, SplitBehavior::kRemoved, SplitBehavior::kMergedWithPrevious,
        SplitBehavior::kMergedWithNext, SplitBehavior::kContiguous}) {
    steps.push_back(split_at("-", behavior));
  }
  for (const PreTokenizerStep& step : steps) {
    size_t num_words = 0;
    std::vector<size_t> words_at_pauses;
    of_step(step).split(
        text, /*first_bytes=*/1, [&] { words_at_pauses.push_back(num_words); },
        [&](std::string_view) { ++num_words; });
    ASSERT_GT(words_at_pauses.size(), 10);
    EXPECT_GT(words_at_pauses.front(), 0);
    EXPECT_LT(words_at_pauses.front(), num_words / 10);
  }
}

TEST(PreTokenizer, PausesWhereNoWordComes) {
  const auto num_pauses = [](const PreTokenizerStep& step, const std::string& text) {
    size_t count = 0;
    of_step(step).split(
        text, /*first_bytes=*/1, [&] { ++count; }, [](std::string_view) {});
    return count;
  };
  EXPECT_GT(num_pauses(split_at("-", SplitBehavior::kRemoved), repeated("-", 100'000)), 10);
  PreTokenizerStep undivided = metaspace();
  undivided.splits = false;
  EXPECT_GT(num_pauses(undivided, repeated("one ", 5'000'000)), 10);
}

}  // namespace
}  // namespace tessera
