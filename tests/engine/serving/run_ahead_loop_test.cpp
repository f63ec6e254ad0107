// What only shows while the next step is launched before the tokens of the last are taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/serving/generation_loop_fixture.h"

namespace tessera {
namespace {

using testing::ElementsAre;

class RunAheadLoopTest : public GenerationLoopTest {
 protected:
  void SetUp() override { make_loop(true); }
};

TEST_F(RunAheadLoopTest, LaunchesAStepBeforeTheTokensOfTheLastAreTaken) {
  size_t launched_at_first_text = 0;
  submit("abc", {}, {.on_text = [&](std::string_view) {
           if (launched_at_first_text == 0) launched_at_first_text = runner_.steps.size();
         }});
  loop_->step();
  EXPECT_EQ(launched_at_first_text, 2u);
  EXPECT_THAT(runner_.steps, ElementsAre("0+3!", "3+1!"));
}

TEST_F(RunAheadLoopTest, DropsWhatAStepComputesForASequenceThatHasEnded) {
  const Sequence& ended = submit("w");
  const Sequence& other = submit("t");
  finish();
  EXPECT_EQ(result(ended).text, "xy");
  EXPECT_EQ(ended.num_tokens(), 3) << "without the token drawn after the end";
  EXPECT_EQ(ended.num_cached(), 3) << "nor one that the dropped step computed";
  EXPECT_EQ(result(other).text, "uvwxy");
  // The step behind the end had both; then one goes on alone, from another place among the drawn.
  EXPECT_THAT(runner_.steps, ElementsAre("0+1! 0+1!", "1+1! 1+1!", "2+1! 2+1!", "3+1! 3+1!", "4+1!",
                                         "5+1!", "6+1!"));
}

TEST_F(RunAheadLoopTest, AStepThatNobodyWaitsForIsNotCollected) {
  submit("y");
  loop_->step();  // draws "z", and the step behind it is on its way
  EXPECT_EQ(runner_.steps.size(), 2u);
  const Sequence& late = submit("v");
  finish();
  EXPECT_EQ(result(late).text, "wxy");
  EXPECT_THAT(runner_.collected, testing::Not(testing::Contains(2u)));
}

TEST_F(RunAheadLoopTest, GivesBackThePageOfATokenThatDoesNotCome) {
  const std::string prompt(kPageSize - 2, 'a');
  const Sequence& sequence = submit(prompt + "x");
  finish();
  EXPECT_EQ(result(sequence).text, "y");
  EXPECT_EQ(runner_.steps.back(), "16+1!") << "the token behind the end";
  EXPECT_EQ(std::ssize(sequence.block_table()), 1);
  expect_no_page_lost({&sequence});
}

// Who ends by count is left out, who waits joins, and a prompt that is cut goes on.
TEST_F(RunAheadLoopTest, StaysAheadWhileSequencesLeaveAndJoin) {
  make_loop(true, {.max_tokens = 8, .max_sequences = 2, .context_size = 100});
  const Sequence& leaving = submit("a", {.max_tokens = 2});
  const Sequence& staying = submit("p", {.max_tokens = 6});
  const Sequence& joining = submit("abcdefghijv");
  std::vector<size_t> num_launched;
  while (loop_->step()) num_launched.push_back(runner_.steps.size());
  EXPECT_EQ(result(leaving).text, "bc");
  EXPECT_EQ(result(staying).text, "qrstuv");
  EXPECT_EQ(result(joining).text, "wxy");
  EXPECT_THAT(runner_.steps, ElementsAre("0+1! 0+1!", "1+1! 1+1!", "2+1! 0+7", "3+1! 7+4!",
                                         "4+1! 11+1!", "5+1! 12+1!", "13+1!", "14+1!"));
  for (size_t i = 0; i + 1 < num_launched.size(); ++i) {
    EXPECT_EQ(num_launched[i], std::min(i + 2, runner_.steps.size())) << "ahead at step " << i;
  }
}

TEST_F(RunAheadLoopTest, APenaltyOrALimitKeepsItFromRunningAhead) {
  for (const SamplingParams& params :
       {SamplingParams{.presence_penalty = 0.5}, SamplingParams{.max_tokens = 1}}) {
    runner_.steps.clear();
    Sequence& sequence = submit("abc", params);
    loop_->step();
    EXPECT_EQ(runner_.steps.size(), 1u);
    loop_->destroy(sequence);
  }
}

}  // namespace
}  // namespace tessera
