// Answers with drafts are those without, whatever becomes of the drafts.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/engine/serving/hashing_loop_fixture.h"

namespace tessera {
namespace {

// Few letters, of which drafts are often made and sometimes right.
struct LookupSetting {
  int64_t num_pages = 100;
  int64_t max_sequences = 4;
  TokenId num_letters = 3;
  bool ends = false;  // with the last of the letters
  bool runs_ahead = false;
  bool prefix_cache = true;
  DraftCosts costs = {};
};

class PromptLookupLoopTest : public HashingLoopTest {
 protected:
  void make(const LookupSetting& setting) {
    std::vector<TokenId> stop_tokens;
    if (setting.ends) stop_tokens.push_back(kFirstLetter + setting.num_letters - 1);
    make_loop(setting.num_pages, setting.num_letters,
              {.limits = {.max_tokens = 64,
                          .max_sequences = setting.max_sequences,
                          .context_size = 200,
                          .max_drafted_tokens = 8},
               .stop_tokens = stop_tokens,
               .runs_ahead = setting.runs_ahead,
               .prefix_cache = setting.prefix_cache,
               .draft_costs = setting.costs});
  }
  std::vector<TokenId> prompt(int64_t size, unsigned seed) const {
    std::mt19937 random(seed);
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i < size; ++i) {
      tokens.push_back(kFirstLetter + static_cast<TokenId>(random() % 3));
    }
    return tokens;
  }
  // Of the cached tokens the pages hold what a next turn finds there.
  void expect_cache_is_right(Sequence& sequence) {
    std::vector<TokenId> next = sequence.tokens();
    next.push_back(kFirstLetter);
    loop_->submit(sequence, next, {.max_tokens = 3}, {});
    finish();
    EXPECT_EQ(result(sequence).tokens, answer(next, 3));
  }
};

std::vector<LookupSetting> all_settings() {
  std::vector<LookupSetting> settings;
  for (const bool runs_ahead : {false, true}) {
    for (const bool prefix_cache : {false, true}) {
      for (const bool ends : {false, true}) {
        settings.push_back({.num_letters = ends ? 5 : 2,
                            .ends = ends,
                            .runs_ahead = runs_ahead,
                            .prefix_cache = prefix_cache});
      }
    }
  }
  return settings;
}

// Ends come in the middle of an accepted run as often as elsewhere.
TEST_F(PromptLookupLoopTest, AnswersAreThoseWithoutDrafts) {
  for (const LookupSetting& setting : all_settings()) {
    make(setting);
    for (unsigned seed = 0; seed < 40; ++seed) {
      const std::vector<TokenId> tokens = prompt(1 + seed, seed);
      const int64_t max_tokens = 1 + seed * 3;
      Sequence& sequence = submit(tokens, {.max_tokens = max_tokens});
      finish();
      EXPECT_EQ(result(sequence).tokens, answer(tokens, max_tokens));
      EXPECT_EQ(sequence.num_tokens() - sequence.num_cached(),
                result(sequence).stop_reason == StopReason::kMaxTokens ? 1 : 0);
      expect_cache_is_right(sequence);
    }
    const ServingStatistics statistics = loop_->statistics();
    EXPECT_GT(statistics.accepted_tokens, 0);
    EXPECT_GT(statistics.drafted_tokens, statistics.accepted_tokens);
  }
}

// With pages for few of them, who gives way in the middle comes again.
TEST_F(PromptLookupLoopTest, SoAreThoseOfManyWithFewPages) {
  for (LookupSetting setting : all_settings()) {
    setting.num_pages = 27;
    setting.ends = false;
    setting.num_letters = 2;
    make(setting);
    std::map<Sequence*, std::vector<TokenId>> prompts;
    for (unsigned seed = 0; seed < 12; ++seed) {
      const std::vector<TokenId> tokens = prompt(20 + seed % 5, seed / 2);
      prompts[&submit(tokens, {.max_tokens = 60 + seed})] = tokens;
    }
    finish();
    for (const auto& [sequence, tokens] : prompts) {
      const auto size = std::ssize(result(*sequence).tokens);
      EXPECT_GE(size, 60);
      EXPECT_EQ(result(*sequence).tokens, answer(tokens, size));
    }
    EXPECT_GT(loop_->statistics().num_preemptions, 0);
    EXPECT_GT(loop_->statistics().accepted_tokens, 0);
    for (const auto& [sequence, tokens] : prompts) loop_->destroy(*sequence);
    EXPECT_EQ(loop_->statistics().held_pages, 0);
  }
}

TEST_F(PromptLookupLoopTest, ACancelKeepsTheTokensBehindItBack) {
  for (const bool runs_ahead : {false, true}) {
    make({.num_letters = 2, .runs_ahead = runs_ahead});
    for (size_t cancelled_after = 1; cancelled_after < 40; ++cancelled_after) {
      const std::vector<TokenId> tokens = prompt(30, 1);
      size_t num_texts = 0;
      Sequence& sequence = submit(tokens, {.max_tokens = 100},
                                  {.on_text = [&](std::string_view) { ++num_texts; },
                                   .is_cancelled = [&] { return num_texts >= cancelled_after; }});
      finish();
      EXPECT_EQ(result(sequence).tokens.size(), cancelled_after);
      EXPECT_EQ(result(sequence).tokens, answer(tokens, std::ssize(result(sequence).tokens)));
      expect_cache_is_right(sequence);
    }
  }
}

TEST_F(PromptLookupLoopTest, ACallbackMayThrowOrDestroyOthers) {
  make({.num_letters = 2, .runs_ahead = true});
  for (int throws_after = 1; throws_after < 30; ++throws_after) {
    int num_texts = 0;
    Sequence& other = submit(prompt(20, 3), {.max_tokens = 50});
    Sequence& sequence =
        submit(prompt(20, 2), {.max_tokens = 50}, {.on_text = [&](std::string_view) {
                 if (++num_texts != throws_after) return;
                 loop_->destroy(other);
                 throw Error("enough");
               }});
    EXPECT_THROW(finish(), Error);
    finish();
    EXPECT_EQ(std::ssize(result(sequence).tokens), throws_after);
    loop_->destroy(sequence);
    EXPECT_EQ(loop_->statistics().held_pages, 0);
  }
}

TEST_F(PromptLookupLoopTest, BrokenLogitsEndAnAnswerWhereTheyWould) {
  for (const bool runs_ahead : {false, true}) {
    make({.num_letters = 2, .runs_ahead = runs_ahead});
    runner_->broken_one_in = 15;
    for (unsigned seed = 0; seed < 30; ++seed) {
      const std::vector<TokenId> tokens = prompt(20, seed);
      Sequence& sequence = submit(tokens, {.max_tokens = 60});
      finish();
      EXPECT_EQ(result(sequence).tokens, answer(tokens, 60));
    }
  }
}

TEST_F(PromptLookupLoopTest, StopStringsEndInTheMiddleOfARun) {
  make({.num_letters = 2});
  Sequence& plain = submit(prompt(30, 1), {.max_tokens = 100});
  finish();
  const std::string text = result(plain).text;
  for (size_t begin = 0; begin + 12 < text.size(); begin += 3) {
    const std::string stop = text.substr(begin, 12);
    Sequence& sequence = submit(prompt(30, 1), {.max_tokens = 100, .stop = {stop}});
    finish();
    EXPECT_EQ(result(sequence).text, text.substr(0, text.find(stop)));
    expect_cache_is_right(sequence);
  }
}

// What a draw needs to know of the tokens before it is not known of drafts.
TEST_F(PromptLookupLoopTest, PenaltiesAndBarredTokensHaveNoDrafts) {
  make({.num_letters = 2, .ends = true});
  submit(prompt(30, 1), {.presence_penalty = 0.5, .max_tokens = 50, .ignore_eos = true});
  finish();
  submit(prompt(30, 1), {.max_tokens = 50, .min_tokens = 50});
  finish();
  EXPECT_EQ(loop_->statistics().drafted_tokens, 0);
  submit(prompt(30, 1), {.max_tokens = 50, .ignore_eos = true});
  finish();
  EXPECT_GT(loop_->statistics().drafted_tokens, 0);
}

TEST_F(PromptLookupLoopTest, ManySequencesHaveNone) {
  make({.max_sequences = 8, .num_letters = 2});
  for (unsigned seed = 0; seed < 8; ++seed) submit(prompt(10, seed), {.max_tokens = 40});
  finish();
  EXPECT_EQ(loop_->statistics().drafted_tokens, 0);
}

}  // namespace
}  // namespace tessera
