#include "engine/serving/prompt_lookup.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/engine/serving/characters.h"

namespace tessera {
namespace {

constexpr DraftCosts kFree = {};
constexpr PromptLookup::Room kRoom = {.drafts = 7};

std::string text_of(const std::vector<TokenId>& tokens) { return {tokens.begin(), tokens.end()}; }

PromptLookup::Lengths lengths_of(std::string_view prompt) {
  return {.prompt_tokens = std::ssize(prompt), .max_length = 1000};
}

// What a lookup that has just begun proposes behind a prompt.
std::string first_drafts(std::string_view prompt, const DraftCosts& costs = kFree) {
  PromptLookup lookup(costs, lengths_of(prompt));
  return text_of(lookup.drafts(characters_of(prompt), kRoom));
}

TEST(PromptLookupTest, DraftsWhatFollowedTheSameTokens) {
  EXPECT_EQ(first_drafts("a quick brown fox; a quick "), "brown f");
  EXPECT_EQ(first_drafts("nothing"), "");
  EXPECT_EQ(first_drafts("abab"), "abababa") << "and goes on behind the end with the drafts";
}

TEST(PromptLookupTest, FollowsTheAnswer) {
  PromptLookup lookup(kFree, lengths_of("12345."));
  EXPECT_EQ(text_of(lookup.drafts(characters_of("12345.7"), kRoom)), "");
  EXPECT_EQ(text_of(lookup.drafts(characters_of("12345.7812"), kRoom)), "345.781");
  EXPECT_EQ(text_of(lookup.drafts(characters_of("12345.78123"), kRoom)), "45.7812");
}

TEST(PromptLookupTest, DraftsNoMoreThanTheAnswerCanUse) {
  const std::string prompt = "abcdefgh abc";
  for (int64_t left = 1; left < 10; ++left) {
    PromptLookup lookup(
        kFree, {.prompt_tokens = std::ssize(prompt), .max_length = std::ssize(prompt) + left});
    // A step draws one token more than it has drafts.
    EXPECT_EQ(std::ssize(lookup.drafts(characters_of(prompt), kRoom)),
              std::min<int64_t>(left - 1, 7));
  }
}

TEST(PromptLookupTest, DraftsNothingBeforeItMay) {
  PromptLookup lookup(kFree, {.prompt_tokens = 4, .first_length = 6, .max_length = 100});
  EXPECT_EQ(text_of(lookup.drafts(characters_of("abab"), kRoom)), "");
  EXPECT_EQ(text_of(lookup.drafts(characters_of("ababa"), kRoom)), "");
  EXPECT_FALSE(lookup.awaits_drafts(characters_of("abab"), kRoom));
  EXPECT_TRUE(lookup.awaits_drafts(characters_of("ababa"), kRoom));
  EXPECT_EQ(text_of(lookup.drafts(characters_of("ababab"), kRoom)), "abababa");
}

// Letters of which every two come again and again, each time followed by others.
TEST(PromptLookupTest, LeavesOffWhereItIsMostlyWrong) {
  for (const DraftCosts& costs : {kCpuDraftCosts, kCudaDraftCosts, kOneKernelDraftCosts}) {
    std::mt19937 random(1);
    std::vector<TokenId> text;
    for (int i = 0; i < 1000; ++i) text.push_back(static_cast<TokenId>(random() % 8));
    PromptLookup lookup(costs, {.prompt_tokens = 1000, .max_length = 10000});
    double loss = 0.0;  // steps without drafts
    for (int i = 0; i < 2000; ++i) {
      const std::vector<TokenId> drafts = lookup.drafts(text, kRoom);
      if (lookup.awaits_drafts(text, kRoom)) loss += costs.wait;
      text.push_back(static_cast<TokenId>(random() % 8));
      if (drafts.empty()) continue;
      loss += costs.step + costs.token * static_cast<double>(drafts.size());
      if (drafts[0] == text.back()) loss -= 1.0;
    }
    EXPECT_LT(loss, 0.02 * 2000) << "though an eighth of the drafts is right";
  }
}

TEST(PromptLookupTest, DraftsAQuotation) {
  for (const DraftCosts& costs : {kCpuDraftCosts, kCudaDraftCosts, kOneKernelDraftCosts}) {
    std::vector<TokenId> text(1000);
    for (TokenId i = 0; i < 1000; ++i) text[static_cast<size_t>(i)] = i;
    PromptLookup lookup(costs, {.prompt_tokens = 1000, .max_length = 10000});
    int64_t num_steps = 0;
    for (TokenId next = 300; next < 600; ++num_steps) {
      const int64_t drafted = std::ssize(lookup.drafts(text, kRoom));
      for (int64_t i = 0; i <= drafted; ++i) text.push_back(next++);
    }
    EXPECT_LT(num_steps, 300 / 6);
  }
}

TEST(PromptLookupTest, OthersInTheStepMakeDraftsDearer) {
  const std::string prompt = "abcdefgh abcde";
  PromptLookup lookup(kCudaDraftCosts, lengths_of(prompt));
  const auto count = [&](int64_t sequences) {
    return std::ssize(lookup.drafts(characters_of(prompt), {.drafts = 4, .sequences = sequences}));
  };
  EXPECT_EQ(count(1), 4);
  EXPECT_EQ(count(4), 0);
}

}  // namespace
}  // namespace tessera
