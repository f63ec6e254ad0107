// Steps of a model as the rooms above ask for them. On the CPU, where a token does not depend on
// what is computed beside it.
#include "engine/model/model_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    return runner_->collect(runner_->launch(step, {}));
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

TEST_F(ModelRunnerTest, AStepThatDrawsNothingIsWaitedForToo) {
  TokenChunk chunk = prompt(first_, first_pages_);
  chunk.sampling = nullptr;
  const LaunchedTokens launched = runner_->launch({&chunk, 1}, {});
  EXPECT_EQ(launched.count, 0);
  EXPECT_TRUE(runner_->collect(launched).empty());
}

}  // namespace
}  // namespace tessera
