#include "engine/serving/end_rule.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

class EndRuleTest : public testing::Test {
 protected:
  std::vector<TokenId> barred(int64_t index, const SamplingParams& params) const {
    const std::span<const TokenId> tokens = rule_.barred_tokens(index, params);
    return {tokens.begin(), tokens.end()};
  }
  void expect_limit(const SamplingParams& params, int64_t num_tokens, StopReason reason) const {
    const LengthLimit limit = rule_.length_limit(/*prompt_tokens=*/5, params);
    EXPECT_EQ(limit.num_tokens, num_tokens) << "max_tokens " << params.max_tokens;
    EXPECT_EQ(limit.reason, reason) << "max_tokens " << params.max_tokens;
  }

  const EndRule rule_ = {.stop_tokens = {2, 7}, .context_size = 20};
};

TEST_F(EndRuleTest, AnyStopTokenEndsAnAnswerUnlessTheyAreIgnored) {
  for (const TokenId token : {2, 7}) {
    EXPECT_TRUE(rule_.is_end(token, {}));
    EXPECT_FALSE(rule_.is_end(token, {.ignore_eos = true}));
  }
  EXPECT_FALSE(rule_.is_end(3, {}));
}

TEST_F(EndRuleTest, StopTokensAreBarredBeforeMinTokens) {
  EXPECT_EQ(barred(0, {}), std::vector<TokenId>{});
  EXPECT_EQ(barred(2, {.min_tokens = 3}), rule_.stop_tokens);
  EXPECT_EQ(barred(3, {.min_tokens = 3}), std::vector<TokenId>{}) << "it is the fourth";
  EXPECT_EQ(barred(2, {.min_tokens = 3, .ignore_eos = true}), std::vector<TokenId>{});
}

TEST_F(EndRuleTest, TheContextIsTheLimitWhereMaxTokensGoBeyondIt) {
  expect_limit({.max_tokens = 1}, 6, StopReason::kMaxTokens);
  expect_limit({.max_tokens = 15}, 20, StopReason::kMaxTokens);
  expect_limit({.max_tokens = 16}, 20, StopReason::kContextFull);
  expect_limit({.max_tokens = 0}, 20, StopReason::kContextFull);
}

TEST(ContextDemand, FitsUpToTheLastToken) {
  const ContextDemand demand = {.prompt_tokens = 5, .answer_tokens = 3, .context_size = 8};
  EXPECT_TRUE(demand.fits());
  const ContextDemand greedier = {.prompt_tokens = 5, .answer_tokens = 4, .context_size = 8};
  EXPECT_FALSE(greedier.fits());
  EXPECT_EQ(greedier.problem(), "prompt 5 + reserved 4 > limit 8 tokens");
  EXPECT_EQ(reserved_tokens({.max_tokens = 0}), 1);
  EXPECT_EQ(reserved_tokens({.max_tokens = 7}), 7);
}

}  // namespace
}  // namespace tessera
