#include "engine/serving/step_plan.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

class StepPlanTest : public testing::Test {
 protected:
  // A request of num_tokens, of which those before `begin` are computed.
  Request request(int64_t num_tokens, int64_t begin = 0) {
    Sequence& sequence = sequences_.emplace_back(pool_);
    sequence.start(std::vector<TokenId>(static_cast<size_t>(num_tokens), 1));
    sequence.launch(begin, 0);
    return {.sequence = &sequence};
  }
  // The same with penalties for its last tokens.
  Request penalized(int64_t num_tokens, int64_t window, int64_t begin = 0) {
    Request request = this->request(num_tokens, begin);
    request.penalty_window = window;
    return request;
  }
  StepPlan& plan(const StepLimits& limits) {
    limits_ = limits;
    return plan_.emplace(limits_);
  }
  // Adds what there is room for: "5+3", or "5+3!" if it completes.
  std::string add(const Request& request) {
    const ScheduledSequence next = plan_->next_tokens(request);
    plan_->add(next);
    return text(next);
  }
  static std::string text(const ScheduledSequence& scheduled) {
    return concat(scheduled.begin, "+", scheduled.num_tokens, scheduled.completes ? "!" : "");
  }
  std::string take() {
    std::string step;
    for (const ScheduledSequence& scheduled : plan_->take()) {
      step += concat(step.empty() ? "" : " ", text(scheduled));
    }
    return step;
  }

  PagePool pool_{/*num_pages=*/20, /*page_size=*/4};
  std::deque<Sequence> sequences_;
  StepLimits limits_;
  std::optional<StepPlan> plan_;
};

TEST_F(StepPlanTest, IsFilledToItsLastToken) {
  plan({.max_tokens = 10});
  EXPECT_EQ(add(request(8, 5)), "5+3!");
  EXPECT_FALSE(plan_->is_full());
  EXPECT_EQ(add(request(9)), "0+7");
  EXPECT_TRUE(plan_->is_full());
  EXPECT_EQ(text(plan_->next_tokens(request(9))), "0+0");
}

TEST_F(StepPlanTest, TellsHowATokenIsKnownThatIsNotThereYet) {
  plan({.max_tokens = 10});
  const Request awaiting = request(8);
  EXPECT_EQ(plan_->next_tokens(awaiting).draw_index, std::nullopt);
  awaiting.sequence->launch(8, /*draw_index=*/3);
  EXPECT_EQ(text(plan_->next_tokens(awaiting)), "8+1!");
  EXPECT_EQ(plan_->next_tokens(awaiting).draw_index, 3);
}

TEST_F(StepPlanTest, TellsWhichStepIsASequencesFirst) {
  plan({.max_tokens = 10});
  const Request running = request(8);
  running.sequence->set_running(true);
  EXPECT_TRUE(plan_->next_tokens(running).is_first);
  running.sequence->launch(4, 0);
  EXPECT_FALSE(plan_->next_tokens(running).is_first);
}

TEST_F(StepPlanTest, BesideDecodesPromptsHaveLessRoom) {
  plan({.max_tokens = 100, .max_tokens_beside_decodes = 20});
  add(request(8, 7));
  plan_->begin_prompts();
  EXPECT_EQ(add(request(50)), "0+19");
  EXPECT_TRUE(plan_->is_full());
}

TEST_F(StepPlanTest, AQuarterOfThatRoomIsForPromptsHoweverManyDecode) {
  plan({.max_tokens = 100, .max_tokens_beside_decodes = 20});
  for (int i = 0; i < 30; ++i) add(request(8, 7));
  plan_->begin_prompts();
  EXPECT_EQ(add(request(50)), "0+5");
  plan({.max_tokens = 32, .max_tokens_beside_decodes = 20});
  for (int i = 0; i < 30; ++i) add(request(8, 7));
  plan_->begin_prompts();
  EXPECT_EQ(add(request(50)), "0+2") << "no more than there is";
}

TEST_F(StepPlanTest, WithoutDecodesOrSuchALimitPromptsHaveAllRoom) {
  plan({.max_tokens = 100, .max_tokens_beside_decodes = 20}).begin_prompts();
  EXPECT_EQ(add(request(50)), "0+50!");
  plan({.max_tokens = 100});
  add(request(8, 7));
  plan_->begin_prompts();
  EXPECT_EQ(add(request(50)), "0+50!");
}

TEST_F(StepPlanTest, LeavesTheLastTokenIfTheDrawWouldListTooMuch) {
  plan({.max_tokens = 100, .max_penalized_tokens = 20});
  EXPECT_EQ(add(penalized(8, /*window=*/100)), "0+8!") << "8 are listed";
  EXPECT_EQ(add(penalized(13, /*window=*/0)), "0+12");
  EXPECT_EQ(add(penalized(14, /*window=*/0, /*begin=*/13)), "13+0");
  EXPECT_EQ(add(request(14)), "0+14!") << "it lists none";
  EXPECT_EQ(add(penalized(13, /*window=*/12)), "0+13!") << "its last 12 are listed";
  EXPECT_EQ(add(penalized(2, /*window=*/12)), "0+1") << "and now 20 are";
}

TEST_F(StepPlanTest, OneSequencesPenaltiesAlwaysFit) {
  plan({.max_tokens = 100, .max_penalized_tokens = 20});
  EXPECT_EQ(add(penalized(50, /*window=*/0)), "0+50!");
  plan({.max_tokens = 200});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(add(penalized(50, /*window=*/0)), "0+50!") << "no limit";
}

TEST_F(StepPlanTest, TakesSequencesWithOneTokenFirst) {
  plan({.max_tokens = 20});
  for (const Request& next : {request(9), request(8, 7), request(3, 1), request(6, 5)}) add(next);
  EXPECT_EQ(take(), "7+1! 5+1! 0+9! 1+2!");
}

// The third holds the first's page, and one of its own behind it.
TEST_F(StepPlanTest, TakesDecodesWithTheSamePagesTogether) {
  std::vector<Request> requests;
  for (int64_t num_tokens = 5; num_tokens < 9; ++num_tokens) {
    requests.push_back(request(num_tokens, num_tokens - 1));
  }
  const auto pages = [&](size_t index) -> BlockTable& {
    return requests[index].sequence->block_table();
  };
  pool_.grow(pages(0), 4);
  pool_.keep(pages(0)[0]);
  pool_.share(pages(2), pages(0)[0]);
  for (const size_t index : {1, 2, 3}) pool_.grow(pages(index), 8);
  plan({.max_tokens = 20});
  for (const Request& next : requests) add(next);
  EXPECT_EQ(take(), "4+1! 6+1! 5+1! 7+1!");
}

}  // namespace
}  // namespace tessera
