// Callbacks that do what ends generations, at moments that are seldom thought of.
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "tests/engine/serving/generation_loop_fixture.h"

namespace tessera {
namespace {

class LoopCallbacksTest : public GenerationLoopTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override { make_loop(GetParam()); }
};

// What is held back, as it may begin a stop string, is told at the end. A new sequence may then lie
// where the destroyed one did.
TEST_P(LoopCallbacksTest, TheLastTextOfACancelledSequenceMayDestroyAnother) {
  Sequence* other = nullptr;
  Sequence* later = nullptr;
  const Sequence& first = submit("a", {.stop = {"cx"}}, {.on_text = [&](std::string_view text) {
                                   if (text != "c") return;
                                   loop_->destroy(*other);
                                   later = &loop_->create_sequence();
                                   loop_->submit(*later, tokens_of("v"), {}, {});
                                 }});
  other = &submit("q");
  loop_->step();
  loop_->step();
  loop_->cancel(first);
  loop_->cancel(*other);
  finish();
  EXPECT_EQ(result(first).text, "bc");
  EXPECT_EQ(result(first).stop_reason, StopReason::kCancelled);
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(result(*later).text, "wxy");
  expect_no_page_lost({&first, later});
}

TEST_P(LoopCallbacksTest, AQuestionThatThrowsDuringAStepEndsItsOwnGeneration) {
  bool is_computing = false;
  runner_.while_computing = [&] { is_computing = true; };
  const Sequence& asked = submit("a", {}, {.is_cancelled = [&] {
                                   if (is_computing) throw std::runtime_error("enough");
                                   return false;
                                 }});
  const Sequence& kept = submit("v");
  EXPECT_THROW(loop_->step(), std::runtime_error);
  EXPECT_TRUE(loop_->is_generating(kept));
  finish();
  EXPECT_EQ(result(asked).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result(kept).text, "wxy");
  expect_no_page_lost({&asked, &kept});
}

TEST_P(LoopCallbacksTest, AQuestionThatThrowsInAStepOfItsOwnGivesItUp) {
  bool was_asked = false;
  const Sequence& asked = submit("a", {}, {.is_cancelled = [&] {
                                   if (std::exchange(was_asked, true)) throw std::runtime_error("");
                                   return false;
                                 }});
  EXPECT_THROW(loop_->step(), std::runtime_error);
  EXPECT_EQ(runner_.num_stopped, 1);
  EXPECT_EQ(result(asked).stop_reason, StopReason::kCancelled);
  expect_no_page_lost({&asked});
}

// Of three that wait or run, the first to be asked takes itself and the last away, and adds
// another.
TEST_P(LoopCallbacksTest, AQuestionMaySubmitAndDestroy) {
  Sequence* own = nullptr;
  Sequence* last = nullptr;
  const Sequence* later = nullptr;
  own = &submit("a", {}, {.is_cancelled = [&] {
                  if (later != nullptr) return true;
                  later = &submit("v");
                  loop_->destroy(*last);
                  loop_->destroy(*own);
                  return true;
                }});
  const Sequence& kept = submit("u");
  last = &submit("b");
  finish();
  EXPECT_EQ(result(kept).text, "vwxy");
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(result(*later).text, "wxy");
  expect_no_page_lost({&kept, later});
}

TEST_P(LoopCallbacksTest, ACallbackMayDestroyItsOwnSequence) {
  Sequence* own = nullptr;
  own = &submit("a", {}, {.on_text = [&](std::string_view text) {
                  if (text == "d") loop_->destroy(*own);
                }});
  const Sequence& kept = submit("v");
  finish();
  EXPECT_EQ(result(kept).text, "wxy");
  expect_no_page_lost({&kept});
}

TEST_P(LoopCallbacksTest, ACallbackCannotStepTheEngine) {
  const Sequence& asking = submit("a", {}, {.on_text = [&](std::string_view) { loop_->step(); }});
  const Sequence& kept = submit("v");
  EXPECT_THROW(finish(), Error);
  finish();
  EXPECT_EQ(result(asking).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result(kept).text, "wxy");
}

TEST_P(LoopCallbacksTest, AnAbandonedGenerationCallsNobody) {
  int num_calls = 0;
  Sequence& sequence = submit("a", {}, {.on_text = [&](std::string_view) { ++num_calls; }});
  loop_->step();
  num_calls = 0;
  loop_->abandon(sequence);
  EXPECT_FALSE(loop_->is_generating(sequence));
  finish();
  EXPECT_EQ(num_calls, 0);
  expect_no_page_lost({&sequence});
}

INSTANTIATE_TEST_SUITE_P(, LoopCallbacksTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "ahead" : "plain"; });

}  // namespace
}  // namespace tessera
