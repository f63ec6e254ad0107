// A loop over a HashingRunner, for tests of what sequences do to each other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "engine/serving/generation_loop.h"
#include "tests/engine/serving/byte_tokenizer.h"
#include "tests/engine/serving/hashing_runner.h"

namespace tessera {

inline constexpr TokenId kFirstLetter = kFirstByteToken + 'a';

class HashingLoopTest : public testing::Test {
 protected:
  static constexpr int64_t kPageSize = 8;

  // The model draws num_letters letters; options.stop_tokens say which of them ends an answer.
  void make_loop(int64_t num_pages, TokenId num_letters, const LoopOptions& options) {
    loop_.reset();
    stop_tokens_ = options.stop_tokens;
    pool_.emplace(num_pages, kPageSize);
    runner_.emplace(*pool_, options.limits, kFirstLetter, num_letters);
    loop_.emplace(*runner_, *pool_, *tokenizer_, options);
  }
  Sequence& submit(const std::vector<TokenId>& prompt, const SamplingParams& params,
                   const GenerationCallbacks& callbacks = {}) {
    Sequence& sequence = loop_->create_sequence();
    loop_->submit(sequence, prompt, params, callbacks);
    return sequence;
  }
  void finish() {
    for (int i = 0; loop_->step(); ++i) ASSERT_LT(i, 10000) << "it never ends";
  }
  const GenerationResult& result(const Sequence& sequence) const {
    return loop_->generation(sequence)->result();
  }
  // What the model answers, token by token, to a request that is alone.
  std::vector<TokenId> answer(std::vector<TokenId> tokens, int64_t max_tokens) const {
    std::vector<TokenId> answer;
    while (std::ssize(answer) < max_tokens) {
      const std::optional<TokenId> token = runner_->token_after(tokens);
      if (!token || std::ranges::find(stop_tokens_, *token) != stop_tokens_.end()) break;
      tokens.push_back(*token);
      answer.push_back(*token);
    }
    return answer;
  }

  std::unique_ptr<Tokenizer> tokenizer_ = load_byte_tokenizer();
  std::vector<TokenId> stop_tokens_;
  std::optional<PagePool> pool_;
  std::optional<HashingRunner> runner_;
  std::optional<GenerationLoop> loop_;
};

}  // namespace tessera
