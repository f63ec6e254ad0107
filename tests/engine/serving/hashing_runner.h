// A runner whose model is a hash: the token that it draws depends on every token before, as it
// finds them in the KV pages. Whoever writes to a page of others, or finds one that holds something
// else, gets another answer than alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "engine/model/page_pool.h"
#include "engine/model/step_limits.h"
#include "engine/model/step_runner.h"
#include "kernels/tensor/check.h"

namespace tessera {

class HashingRunner : public StepRunner {
 public:
  // Draws tokens from first_token on, num_tokens of them.
  HashingRunner(const PagePool& pool, const StepLimits& limits, TokenId first_token,
                TokenId num_tokens)
      : pool_(pool), limits_(limits), first_token_(first_token), num_tokens_(num_tokens) {}

  LaunchedTokens launch(std::span<const TokenChunk> step,
                        const StopQuestion& should_stop) override {
    if (should_stop && should_stop()) {
      ++num_stopped;
      for (const TokenChunk& chunk : step) write(chunk, /*offset=*/1000);  // half of a step
      throw Stopped{};
    }
    check_limits(step);
    std::vector<std::optional<TokenId>> drawn;
    for (const TokenChunk& chunk : step) write(chunk, 0);
    for (const TokenChunk& chunk : step) {
      num_computed += chunk.num_tokens;
      for (int64_t draw = 0; draw < chunk.num_draws(); ++draw) {
        drawn.push_back(token_after(read(chunk, chunk.end() - chunk.num_draws() + draw + 1)));
      }
    }
    drawn_ = drawn;
    launched_.push_back(drawn);
    if (launched_.size() > 2) launched_.pop_front();
    return {.count = std::ssize(drawn), .download = num_launched_++};
  }

  std::vector<DrawnToken> collect(const LaunchedTokens& step) override {
    std::vector<DrawnToken> tokens;
    for (const auto& token : launched_.at(launched_.size() - (num_launched_ - step.download))) {
      tokens.push_back({token, {}});
    }
    return tokens;
  }

  // What follows these tokens; nothing where logits are not finite.
  std::optional<TokenId> token_after(const std::vector<TokenId>& tokens) const {
    uint64_t hash = 1;
    for (const TokenId token : tokens)
      hash = (hash ^ static_cast<uint64_t>(token)) * 0x9e3779b97f4a7c15 + 1;
    if (broken_one_in > 0 && (hash >> 20) % broken_one_in == 0) return std::nullopt;
    return first_token_ + static_cast<TokenId>((hash >> 33) % static_cast<uint64_t>(num_tokens_));
  }

  uint64_t broken_one_in = 0;  // of how many draws one is not finite
  int num_stopped = 0;
  int64_t num_computed = 0;  // tokens

 private:
  void check_limits(std::span<const TokenChunk> step) const {
    ASSERT_FALSE(step.empty());
    int64_t num_tokens = 0, num_sampled = 0, num_drafts = 0;
    for (const TokenChunk& chunk : step) {
      num_tokens += chunk.num_tokens;
      num_sampled += chunk.num_draws();
      num_drafts += std::ssize(chunk.drafts);
      EXPECT_EQ(chunk.draw_index.has_value(), !chunk.token(chunk.end() - 1));
    }
    EXPECT_LE(num_tokens, limits_.max_tokens);
    EXPECT_LE(num_sampled, limits_.max_draws());
    EXPECT_LE(num_drafts > 0 ? num_tokens : 0, limits_.max_drafted_tokens);
    EXPECT_LE(std::ssize(step), limits_.max_sequences);
    EXPECT_TRUE(std::ranges::is_partitioned(
        step, [](const TokenChunk& chunk) { return chunk.num_tokens == 1; }));
  }

  void write(const TokenChunk& chunk, TokenId offset) {
    for (int64_t position = chunk.begin; position < chunk.end(); ++position) {
      const auto page = static_cast<size_t>(position / pool_.page_size());
      EXPECT_EQ(pool_.num_holders(chunk.block_table[page]), 1) << "writes to a page of others";
      const std::optional<TokenId> known = chunk.token(position);
      const TokenId token =
          known ? *known : drawn_.at(static_cast<size_t>(*chunk.draw_index)).value_or(0);
      pages_[kv_slot(chunk.block_table, position, pool_.page_size())] = token + offset;
    }
  }

  std::vector<TokenId> read(const TokenChunk& chunk, int64_t end) const {
    std::vector<TokenId> tokens;
    for (int64_t position = 0; position < end; ++position) {
      tokens.push_back(pages_.at(kv_slot(chunk.block_table, position, pool_.page_size())));
    }
    return tokens;
  }

  const PagePool& pool_;
  StepLimits limits_;
  TokenId first_token_, num_tokens_;
  std::map<int32_t, TokenId> pages_;  // by slot
  std::vector<std::optional<TokenId>> drawn_;
  std::deque<std::vector<std::optional<TokenId>>> launched_;
  uint64_t num_launched_ = 0;
};

}  // namespace tessera
