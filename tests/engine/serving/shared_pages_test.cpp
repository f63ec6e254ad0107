// Requests that share pages, run out of them, come, go and fail in any order: each answer is what
// it would be alone, and no page is lost.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/engine/serving/hashing_loop_fixture.h"

namespace tessera {
namespace {

constexpr TokenId kLetters = 26;
constexpr TokenId kEnd = kFirstLetter + 25;

struct Setting {
  int64_t num_pages = 100;
  StepLimits limits = {.max_tokens = 64, .max_sequences = 8, .context_size = 200};
  bool runs_ahead = false;
  bool prefix_cache = true;
};

class SharedPagesTest : public HashingLoopTest {
 protected:
  void make(const Setting& setting) {
    make_loop(setting.num_pages, kLetters,
              {.limits = setting.limits,
               .stop_tokens = {kEnd},
               .runs_ahead = setting.runs_ahead,
               .prefix_cache = setting.prefix_cache});
  }
  Sequence& submit(const std::vector<TokenId>& prompt, int64_t max_tokens) {
    return HashingLoopTest::submit(prompt, {.max_tokens = max_tokens});
  }
  // Tokens that all prompts of a kind begin with.
  static std::vector<TokenId> prompt_of(int64_t shared, int64_t own, int seed) {
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i < shared; ++i)
      tokens.push_back(kFirstLetter + static_cast<TokenId>(i % 7));
    std::mt19937 random(static_cast<unsigned>(seed));
    for (int64_t i = 0; i < own; ++i) {
      tokens.push_back(kFirstLetter + static_cast<TokenId>(random() % kLetters));
    }
    return tokens;
  }
};

class EitherSharedPagesTest : public SharedPagesTest, public testing::WithParamInterface<bool> {
 protected:
  Setting setting() const { return {.runs_ahead = GetParam()}; }
};

// All come at once; the first computes what they share, and the others wait a step for it.
TEST_P(EitherSharedPagesTest, WhatRequestsShareIsComputedOnce) {
  make(setting());
  std::vector<const Sequence*> sequences;
  for (int i = 0; i < 8; ++i) sequences.push_back(&submit(prompt_of(40, 3, i), 1));
  finish();
  EXPECT_EQ(runner_->num_computed, 43 + 7 * 3);
  EXPECT_EQ(loop_->statistics().prompt_tokens_cached, 7 * 40);
  EXPECT_EQ(loop_->statistics().prompt_tokens_computed, 43 + 7 * 3);
  for (int i = 0; i < 8; ++i) {
    const GenerationResult& seen = result(*sequences[static_cast<size_t>(i)]);
    EXPECT_EQ(seen.tokens, answer(prompt_of(40, 3, i), 1));
    EXPECT_EQ(seen.cached_prompt_tokens, i == 0 ? 0 : 40);
    EXPECT_TRUE(seen.is_prompt_computed());
  }
  EXPECT_EQ(loop_->statistics().held_pages, 5 + 8) << "and each has a page of its own";
}

// A prompt of several steps is waited for page by page, and others pass those who wait for it.
TEST_P(EitherSharedPagesTest, WhoSharesNothingIsNotKeptWaiting) {
  make(setting());
  submit(prompt_of(150, 1, 0), 1);
  const Sequence& sharing = submit(prompt_of(150, 1, 1), 1);
  const Sequence& other = submit(prompt_of(0, 5, 2), 1);
  for (int i = 0; loop_->is_generating(other); ++i) {
    ASSERT_LT(i, 3);
    loop_->step();
  }
  EXPECT_TRUE(loop_->is_generating(sharing));
  finish();
  EXPECT_EQ(runner_->num_computed, 151 + 151 - 144 + 5);
}

TEST_P(EitherSharedPagesTest, AnswersOfOnePromptShareIt) {
  make(setting());
  const std::vector<TokenId> prompt = prompt_of(0, 32, 5);
  const Sequence& first = submit(prompt, 5);
  const Sequence& second = submit(prompt, 5);
  finish();
  EXPECT_EQ(result(first).tokens, result(second).tokens);
  EXPECT_EQ(result(second).cached_prompt_tokens, 24) << "the page of the last token is its own";
}

TEST_P(EitherSharedPagesTest, ADestroyedSequencesPagesAreFoundLater) {
  make(setting());
  Sequence& first = submit(prompt_of(40, 9, 1), 9);
  finish();
  std::vector<TokenId> conversation = first.tokens();
  loop_->destroy(first);
  EXPECT_EQ(loop_->statistics().held_pages, 0);
  const int64_t cached = loop_->statistics().cached_pages;
  EXPECT_GE(cached, 6);
  conversation.push_back(kFirstLetter);
  const Sequence& second = submit(conversation, 1);
  finish();
  EXPECT_EQ(result(second).cached_prompt_tokens, cached * kPageSize);
}

TEST_P(EitherSharedPagesTest, WithoutACacheEachComputesItsOwn) {
  Setting off = setting();
  off.prefix_cache = false;
  make(off);
  for (int i = 0; i < 3; ++i) submit(prompt_of(40, 3, i), 1);
  finish();
  EXPECT_EQ(runner_->num_computed, 3 * 43);
  EXPECT_EQ(loop_->statistics().cached_pages, 0);
}

// Who gave way finds its pages again as long as nobody needed them.
TEST_P(EitherSharedPagesTest, WhatAnswersDependOnIsNotLostWithPages) {
  Setting small = setting();
  small.num_pages = 25;
  make(small);
  std::vector<std::pair<const Sequence*, std::vector<TokenId>>> requests;
  for (int i = 0; i < 12; ++i) {
    const std::vector<TokenId> prompt = prompt_of(16 * (i % 2), 20 + i, i);
    requests.emplace_back(&submit(prompt, 100), answer(prompt, 100));
  }
  finish();
  for (const auto& [sequence, expected] : requests) EXPECT_EQ(result(*sequence).tokens, expected);
  EXPECT_GT(loop_->statistics().num_preemptions, 0);
}

// Its keys and values may be no numbers either.
TEST_P(EitherSharedPagesTest, PagesOfLogitsThatAreNotFiniteAreNotFound) {
  make(setting());
  runner_->broken_one_in = 1;
  const Sequence& broken = submit(prompt_of(40, 3, 0), 5);
  finish();
  EXPECT_EQ(result(broken).stop_reason, StopReason::kNonFiniteLogits);
  EXPECT_EQ(loop_->statistics().cached_pages, 0);
  EXPECT_EQ(loop_->statistics().free_pages, 100);
}

INSTANTIATE_TEST_SUITE_P(, EitherSharedPagesTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "ahead" : "plain"; });

// A request, what it is to answer and how it may end before.
struct Client {
  Sequence* sequence = nullptr;
  std::vector<TokenId> prompt;
  int64_t max_tokens = 0;
  int64_t submitted_at = 0;
  std::vector<TokenId> streamed;
  bool is_to_stop = false;   // says is_cancelled
  bool is_to_throw = false;  // at its next text
};

class RandomRequestsTest : public SharedPagesTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    random_.seed(static_cast<unsigned>(GetParam()));
    Setting setting = {.num_pages = between(10, 60),
                       .limits = {.max_tokens = between(8, 64),
                                  .max_sequences = between(1, 8),
                                  .context_size = between(40, 150)},
                       .runs_ahead = chance(2),
                       .prefix_cache = !chance(4)};
    if (chance(2)) setting.limits.max_tokens_beside_decodes = between(4, 32);
    if (chance(2)) setting.limits.max_penalized_tokens = between(150, 300);
    longest_ = std::min(setting.limits.context_size, setting.num_pages * kPageSize);
    make(setting);
    runner_->broken_one_in = chance(3) ? 200 : 0;
  }

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool chance(int64_t one_in) { return between(1, one_in) == 1; }

  void submit_one(int64_t step) {
    Client* client = nullptr;
    if (!idle_.empty() && chance(2)) {  // a next turn, or something else
      client = idle_.back();
      idle_.pop_back();
      client->prompt = client->sequence->tokens();
      if (chance(3))
        client->prompt.resize(static_cast<size_t>(between(1, std::ssize(client->prompt))));
    } else {
      client = &clients_.emplace_back();
      client->sequence = &loop_->create_sequence();
      client->prompt = prompt_of(8 * between(0, 3), 0, 0);
    }
    const int64_t own = between(1, 30);
    for (int64_t i = 0; i < own; ++i) {
      client->prompt.push_back(kFirstLetter + static_cast<TokenId>(between(0, 3)));
    }
    client->prompt.resize(static_cast<size_t>(std::min(longest_ - 1, std::ssize(client->prompt))));
    client->max_tokens = between(1, longest_ - std::ssize(client->prompt));
    client->submitted_at = step;
    client->streamed.clear();
    client->is_to_stop = client->is_to_throw = false;
    const GenerationCallbacks callbacks = {.on_text =
                                               [client](std::string_view text) {
                                                 for (const char byte : text)
                                                   client->streamed.push_back(token_of(byte));
                                                 if (client->is_to_throw) throw Error("enough");
                                               },
                                           .is_cancelled = [client] { return client->is_to_stop; }};
    SamplingParams params = {.max_tokens = client->max_tokens};
    if (chance(5)) params.presence_penalty = 0.5;  // which this model does not mind
    if (chance(2)) params.penalty_window = 64;
    loop_->submit(*client->sequence, client->prompt, params, callbacks);
    running_.push_back(client);
  }

  void disturb_one() {
    if (running_.empty()) return;
    Client& client = *running_[static_cast<size_t>(between(0, std::ssize(running_) - 1))];
    switch (between(0, 3)) {
      case 0:
        client.is_to_stop = true;
        break;
      case 1:
        client.is_to_throw = true;
        break;
      case 2:
        loop_->cancel(*client.sequence);
        break;
      case 3:
        loop_->destroy(*client.sequence);
        client.sequence = nullptr;
        std::erase(running_, &client);
        break;
    }
  }

  void take_answers() {
    for (size_t i = 0; i < running_.size();) {
      Client& client = *running_[i];
      if (loop_->is_generating(*client.sequence)) {
        ++i;
        continue;
      }
      expect_answer(client);
      running_.erase(running_.begin() + static_cast<int64_t>(i));
      if (chance(2)) {
        idle_.push_back(&client);
      } else {
        loop_->destroy(*client.sequence);
        client.sequence = nullptr;
      }
    }
  }

  void expect_answer(const Client& client) {
    const GenerationResult& seen = result(*client.sequence);
    const std::vector<TokenId> expected = answer(client.prompt, client.max_tokens);
    EXPECT_EQ(seen.tokens, client.streamed) << "each token is told once";
    ++num_ended_[seen.stop_reason];
    if (seen.stop_reason == StopReason::kCancelled) {
      ASSERT_LE(seen.tokens.size(), expected.size());
      EXPECT_TRUE(std::ranges::equal(seen.tokens, std::span(expected).first(seen.tokens.size())));
      return;
    }
    EXPECT_EQ(seen.tokens, expected);
    EXPECT_TRUE(seen.is_prompt_computed());
    EXPECT_EQ(seen.stop_reason == StopReason::kNonFiniteLogits, !seen.error.empty());
  }

  // Every page is held as often as tables name it.
  void expect_sound_pages() const {
    std::map<int32_t, int64_t> holders;
    for (const Client& client : clients_) {
      if (client.sequence == nullptr) continue;
      for (const int32_t page : client.sequence->block_table()) ++holders[page];
    }
    for (int32_t page = 0; page < pool_->num_pages(); ++page) {
      const auto found = holders.find(page);
      ASSERT_EQ(pool_->num_holders(page), found == holders.end() ? 0 : found->second);
    }
    ASSERT_EQ(pool_->num_free_pages() + std::ssize(holders), pool_->num_pages());
  }

  std::mt19937_64 random_;
  int64_t longest_ = 0;
  std::deque<Client> clients_;
  std::vector<Client*> running_, idle_;
  std::map<StopReason, int> num_ended_;
};

TEST_P(RandomRequestsTest, AnswerAsTheyWouldAlone) {
  constexpr int64_t kRequests = 300;
  int64_t num_submitted = 0;
  for (int64_t step = 0; num_submitted < kRequests || !running_.empty(); ++step) {
    ASSERT_LT(step, 200000) << "somebody starves";
    while (num_submitted < kRequests && (chance(3) || std::ssize(running_) < 2)) {
      submit_one(step);
      ++num_submitted;
    }
    if (chance(10)) disturb_one();
    try {
      loop_->step();
    } catch (const Error& error) {
      ASSERT_STREQ(error.what(), "enough");
    }
    take_answers();
    ASSERT_NO_FATAL_FAILURE(expect_sound_pages());
  }
  EXPECT_GT(num_ended_[StopReason::kEndOfSequence] + num_ended_[StopReason::kMaxTokens], 0);
  for (Client& client : clients_) {
    if (client.sequence != nullptr) loop_->destroy(*client.sequence);
  }
  EXPECT_EQ(pool_->num_free_pages(), pool_->num_pages());
}

INSTANTIATE_TEST_SUITE_P(, RandomRequestsTest, testing::Range(0, 60));

// As branches of a chat do: they hold the same whole pages, and none writes to the others'.
TEST_P(EitherSharedPagesTest, BranchesShareWhatTheyBeginWith) {
  make(setting());
  const std::vector<TokenId> stem = prompt_of(43, 0, 0);
  Sequence& trunk = submit(stem, 1);
  finish();
  std::vector<Sequence*> branches;
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 3; ++i) {
    prompts.push_back(stem);
    prompts.back().push_back(kFirstLetter + static_cast<TokenId>(i));
    branches.push_back(&submit(prompts.back(), 5));
  }
  const int64_t computed = runner_->num_computed;
  finish();
  for (size_t page = 0; page < 5; ++page) {
    EXPECT_EQ(pool_->num_holders(trunk.block_table()[page]), 4);
    for (Sequence* branch : branches) {
      EXPECT_EQ(branch->block_table()[page], trunk.block_table()[page]);
    }
  }
  // Of the page in which they part, each has its own.
  EXPECT_EQ(pool_->num_holders(trunk.block_table()[5]), 1);
  int64_t own = 0;
  for (int i = 0; i < 3; ++i) {
    const std::vector<TokenId> tokens = answer(prompts[static_cast<size_t>(i)], 5);
    EXPECT_EQ(result(*branches[static_cast<size_t>(i)]).tokens, tokens);
    own += 44 - 40 + std::max<int64_t>(std::ssize(tokens) - 1, 0);
  }
  EXPECT_LE(runner_->num_computed - computed,
            own + 3 * 2);  // beside what runs ahead and is dropped
}

}  // namespace
}  // namespace tessera
