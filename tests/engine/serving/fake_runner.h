// A runner without a model: after each token it draws the next byte ("a", "b", "c", ...). Checks
// that it is asked for what a real one could compute, and remembers what it was asked for.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/model/page_pool.h"
#include "engine/model/sampling_lists.h"
#include "engine/model/step_runner.h"
#include "kernels/tensor/check.h"

namespace tessera {

class FakeRunner : public StepRunner {
 public:
  explicit FakeRunner(int64_t page_size) : page_size_(page_size) {}

  LaunchedTokens launch(std::span<const TokenChunk> step,
                        const StopQuestion& should_stop) override {
    if (while_computing) while_computing();
    if (should_stop && should_stop()) {
      ++num_stopped;
      throw Stopped{};
    }
    steps.emplace_back();
    Launched launched;
    std::set<int32_t> slots;
    for (const TokenChunk& chunk : step) {
      check(chunk, slots);
      steps.back() += concat(steps.back().empty() ? "" : " ", chunk.begin, "+", chunk.num_tokens,
                             chunk.sampling != nullptr ? "!" : "");
      if (chunk.sampling != nullptr) {
        for (int64_t draw = 0; draw < chunk.num_draws(); ++draw) {
          answer_indices.push_back(chunk.answer_index + draw);
          launched.tokens.push_back(
              draw_after(token_at(chunk, chunk.end() - chunk.num_draws() + draw)));
        }
      }
    }
    launched.num_top_logprobs = num_top_logprobs(step);
    launched.number = ++num_launched_;
    launched_.push_back(launched);
    if (launched_.size() > 2) launched_.pop_front();
    last_drawn_ = launched.tokens;
    return {.count = static_cast<int64_t>(launched.tokens.size()),
            .download = launched.number,
            .has_logprobs = launched.num_top_logprobs.has_value()};
  }

  std::vector<DrawnToken> collect(const LaunchedTokens& step) override {
    collected.push_back(step.download);
    for (const Launched& launched : launched_) {
      if (launched.number == step.download) return drawn_tokens(launched);
    }
    throw Error("collected a step that is not one of the last two");
  }

  std::function<void()> while_computing;  // called in the middle of launch()
  std::optional<TokenId> non_finite_at;   // the token after which logits are not finite
  std::vector<std::string> steps;         // "4+1! 0+20": as the tests of the scheduler write them
  std::vector<int64_t> answer_indices;    // of all tokens drawn
  std::vector<uint64_t> collected;        // numbers of steps, from 1
  int num_stopped = 0;

 private:
  struct Launched {
    uint64_t number = 0;
    std::vector<std::optional<TokenId>> tokens;
    std::optional<int64_t> num_top_logprobs;
  };

  // The log-probability of a byte is its negative; the most probable bytes are the first.
  std::vector<DrawnToken> drawn_tokens(const Launched& launched) const {
    std::vector<DrawnToken> drawn;
    for (const std::optional<TokenId>& token : launched.tokens) drawn.push_back({token, {}});
    if (!launched.num_top_logprobs) return drawn;
    EXPECT_EQ(launched.number, num_launched_) << "another step has overwritten them";
    for (DrawnToken& token : drawn) {
      TokenLogprobs& own = token.logprobs.emplace();
      own.logprob = -static_cast<float>(token.id.value_or(0));
      for (TokenId id = 0; id < *launched.num_top_logprobs; ++id) {
        own.top.push_back({.token = id, .logprob = -static_cast<float>(id)});
      }
    }
    return drawn;
  }

  // Every token has a slot of its own, and the host knows it or the last step has drawn it.
  void check(const TokenChunk& chunk, std::set<int32_t>& slots) const {
    for (int64_t position = chunk.begin; position < chunk.end(); ++position) {
      const int32_t slot = kv_slot(chunk.block_table, position, page_size_);
      EXPECT_TRUE(slots.insert(slot).second) << "two tokens in slot " << slot;
    }
    EXPECT_EQ(chunk.draw_index.has_value(), !chunk.token(chunk.end() - 1));
    EXPECT_TRUE(!chunk.draw_index || chunk.num_tokens == 1);
  }

  TokenId token_at(const TokenChunk& chunk, int64_t position) const {
    if (!chunk.draw_index) return *chunk.token(position);
    return last_drawn_.at(static_cast<size_t>(*chunk.draw_index)).value_or(0);
  }

  std::optional<TokenId> draw_after(TokenId token) const {
    if (token == non_finite_at) return std::nullopt;
    return token + 1;
  }

  int64_t page_size_;
  uint64_t num_launched_ = 0;
  std::deque<Launched> launched_;
  std::vector<std::optional<TokenId>> last_drawn_;
};

}  // namespace tessera
