// Steps of a model as the rooms above ask for them. On the CPU, where a token does not depend on
// what is computed beside it.
#include "engine/model/model_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/model/plan_memory.h"
#include "model_loaders/weight_inventory.h"
#include "tests/engine/model_fixture.h"

namespace tessera {
namespace {

using testing::ElementsAre;

class ModelRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = read_model_folder(model_.options());
    const Checkpoint checkpoint = Checkpoint::open(folder_.path);
    adopt_layout(checkpoint, folder_.config);
    std::unique_ptr<Backend> backend = make_cpu_backend(1);
    const MemoryPlan plan =
        plan_memory(folder_.config, {.max_sequences = 4, .page_size = 16},
                    backend->fused_operations(folder_.config.block),
                    ModelWeights::size_bytes(folder_.config, checkpoint, backend->operations()));
    runner_.emplace(folder_.config, checkpoint, plan, folder_.config.vocab_size,
                    std::move(backend));
    runner_->read_weights(checkpoint, false, {});
  }

  // The sequence's first tokens, all computed in one step after which one is drawn.
  TokenChunk prompt(const std::vector<TokenId>& tokens, const std::vector<int32_t>& pages) const {
    return {.tokens = tokens,
            .block_table = pages,
            .num_tokens = std::ssize(tokens),
            .sampling = &greedy_};
  }
  std::vector<std::optional<TokenId>> draw(const std::vector<TokenChunk>& step) {
    std::vector<std::optional<TokenId>> ids;
    for (const DrawnToken& token : collect(step)) ids.push_back(token.id);
    return ids;
  }
  std::vector<DrawnToken> collect(const std::vector<TokenChunk>& step) {
    return runner_->collect(runner_->launch(step, {}));
  }

  std::vector<float> logits_after(const std::vector<TokenId>& tokens) {
    const std::vector<int32_t> page = {3};
    const std::vector<float> all = runner_->prompt_logits(tokens, page, {});
    return {all.end() - folder_.config.vocab_size, all.end()};
  }
  static void expect_logprobs(const DrawnToken& drawn, const std::vector<float>& logits) {
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    const auto logprob = [&](TokenId token) {
      return logits[static_cast<size_t>(token)] - std::log(sum);
    };
    EXPECT_NEAR(drawn.logprobs->logprob, logprob(*drawn.id), 1e-5);
    float last = 0.0f;
    for (const TokenLogprob& other : drawn.logprobs->top) {
      EXPECT_NEAR(other.logprob, logprob(other.token), 1e-5);
      EXPECT_LE(other.logprob, last);
      last = other.logprob;
    }
    EXPECT_EQ(drawn.logprobs->top.front().token, std::ranges::max_element(logits) - logits.begin());
  }

  const SamplingParams greedy_;
  const std::vector<TokenId> first_ = {70, 80, 90}, second_ = {100, 110, 120, 130};
  const std::vector<int32_t> first_pages_ = {0}, second_pages_ = {1}, third_pages_ = {2};
  ModelFixture model_;
  ModelFolder folder_;
  std::optional<ModelRunner> runner_;
};

// In another order than they were drawn in, beside a prompt, with one left out.
TEST_F(ModelRunnerTest, TakesTokensThatOnlyTheDeviceKnows) {
  const auto drawn = draw({prompt(first_, first_pages_), prompt(second_, second_pages_)});
  std::vector<TokenId> first = first_, second = second_;
  first.push_back(*drawn[0]);
  second.push_back(*drawn[1]);
  TokenChunk of_first = prompt(first, first_pages_);
  of_first.begin = 3;
  of_first.num_tokens = 1;
  TokenChunk of_second = prompt(second, second_pages_);
  of_second.begin = 4;
  of_second.num_tokens = 1;
  const TokenChunk of_third = prompt(first_, third_pages_);
  const auto expected = draw({of_second, of_first, of_third});
  const auto without_second = draw({of_first, of_third});

  of_first.tokens = first_;
  of_first.draw_index = 0;
  of_second.tokens = second_;
  of_second.draw_index = 1;
  EXPECT_EQ(draw({prompt(first_, first_pages_), prompt(second_, second_pages_)}), drawn);
  EXPECT_EQ(draw({of_second, of_first, of_third}), expected);
  EXPECT_EQ(draw({prompt(first_, first_pages_), prompt(second_, second_pages_)}), drawn);
  EXPECT_EQ(draw({of_first, of_third}), without_second);
  EXPECT_THAT(without_second, ElementsAre(expected[1], expected[2]));
}

// On devices that need it, loading does this beside the reading of weights.
TEST_F(ModelRunnerTest, WarmingUpChangesNoAnswer) {
  const auto drawn = draw({prompt(first_, first_pages_)});
  runner_->warm_up();
  EXPECT_EQ(draw({prompt(first_, first_pages_)}), drawn);
}

// Penalties and barred tokens decide what is drawn, not what is told of it.
TEST_F(ModelRunnerTest, LogprobsAreThoseOfTheModel) {
  const SamplingParams two = {.top_logprobs = 2};
  const SamplingParams penalized = {.repetition_penalty = 1.5, .top_logprobs = 5};
  const auto plain = collect({prompt(first_, first_pages_), prompt(second_, second_pages_)});
  EXPECT_FALSE(plain[0].logprobs);
  TokenChunk of_first = prompt(first_, first_pages_);
  of_first.sampling = &two;
  TokenChunk of_second = prompt(second_, second_pages_);
  of_second.sampling = &penalized;
  const std::vector<TokenId> best = {*plain[1].id};
  of_second.barred = best;
  const auto drawn = collect({of_first, of_second, prompt(first_, third_pages_)});
  EXPECT_EQ(drawn[0].id, plain[0].id);
  EXPECT_NE(drawn[1].id, plain[1].id);
  for (const DrawnToken& token : drawn) ASSERT_EQ(token.logprobs->top.size(), 5u);
  expect_logprobs(drawn[0], logits_after(first_));
  expect_logprobs(drawn[1], logits_after(second_));
  EXPECT_EQ(drawn[1].logprobs->top.front().token, plain[1].id);
  EXPECT_GT(drawn[1].logprobs->top.front().logprob, drawn[1].logprobs->logprob);
  expect_logprobs(drawn[2], logits_after(first_));
}

TEST_F(ModelRunnerTest, EveryDraftHasItsLogprobs) {
  const SamplingParams params = {.top_logprobs = 3};
  TokenChunk chunk = prompt(first_, first_pages_);
  const std::vector<TokenId> drafts = {100, 110};
  chunk.drafts = drafts;
  chunk.num_tokens += 2;
  chunk.sampling = &params;
  const auto drawn = collect({chunk});
  ASSERT_EQ(drawn.size(), 3u);
  std::vector<TokenId> text = first_;
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (i > 0) text.push_back(drafts[i - 1]);
    expect_logprobs(drawn[i], logits_after(text));
  }
}

TEST_F(ModelRunnerTest, AStepThatDrawsNothingIsWaitedForToo) {
  TokenChunk chunk = prompt(first_, first_pages_);
  chunk.sampling = nullptr;
  const LaunchedTokens launched = runner_->launch({&chunk, 1}, {});
  EXPECT_EQ(launched.count, 0);
  EXPECT_TRUE(runner_->collect(launched).empty());
}

}  // namespace
}  // namespace tessera
