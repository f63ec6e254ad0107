// Chances begin as draft_gain.h has them: 0.4 behind a match of two tokens, then 0.5 and 0.6.
#include "engine/serving/draft_gain.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

void count_often(DraftGain& gain, int64_t match_length, bool was_right) {
  for (int i = 0; i < 100; ++i) gain.count(match_length, was_right);
}

TEST(DraftGainTest, WhatIsFreeAlwaysPaysButBehindAMatchOfOneToken) {
  const DraftGain gain(DraftCosts{});
  EXPECT_EQ(gain.best_count(2, 7, 1), 7);
  EXPECT_EQ(gain.best_count(2, 3, 1), 3);
  EXPECT_EQ(gain.best_count(2, 0, 1), 0);
  EXPECT_EQ(gain.best_count(1, 7, 1), 0);
}

// They are all right up to the first, second and third with 0.4, 0.4 * 0.5 and 0.4 * 0.5 * 0.6.
TEST(DraftGainTest, ADraftPaysIfAllUpToItAreRightOftenEnough) {
  EXPECT_EQ(DraftGain({.token = 0.39}).best_count(2, 7, 1), 1);
  EXPECT_EQ(DraftGain({.token = 0.19}).best_count(2, 7, 1), 2);
  EXPECT_EQ(DraftGain({.token = 0.11}).best_count(2, 7, 1), 3);
  EXPECT_EQ(DraftGain({.token = 0.41}).best_count(2, 7, 1), 0);
}

TEST(DraftGainTest, AllOfAStepsDraftsPayForTheStep) {
  EXPECT_EQ(DraftGain({.step = 0.39}).best_count(2, 1, 1), 1);
  EXPECT_EQ(DraftGain({.step = 0.41}).best_count(2, 1, 1), 0);
  EXPECT_EQ(DraftGain({.step = 0.59}).best_count(2, 2, 1), 2);
  EXPECT_EQ(DraftGain({.step = 0.61}).best_count(2, 2, 1), 0);
}

// Two sequences wait for what a step costs more; a token of 0.25 costs them 0.5 of a step of 1.25.
TEST(DraftGainTest, AllSequencesOfAStepWaitForItsDrafts) {
  EXPECT_EQ(DraftGain({.step = 0.19}).best_count(2, 1, 2), 1);
  EXPECT_EQ(DraftGain({.step = 0.21}).best_count(2, 1, 2), 0);
  EXPECT_EQ(DraftGain({.token = 0.24}).best_count(2, 1, 2), 1);
  EXPECT_EQ(DraftGain({.token = 0.26}).best_count(2, 1, 2), 0);
}

TEST(DraftGainTest, LearnsFromWhatWasRightOrWrong) {
  DraftGain gain({.token = 0.47});
  EXPECT_EQ(gain.best_count(2, 1, 1), 0);
  gain.count(2, true);
  EXPECT_EQ(gain.best_count(2, 1, 1), 1) << "an eighth of the way from 0.4 to 1";
  gain.count(2, false);
  EXPECT_EQ(gain.best_count(2, 1, 1), 0);
}

TEST(DraftGainTest, LearnsOfEachLengthByItselfUpToLongMatches) {
  DraftGain gain({.token = 0.5});
  count_often(gain, 20, false);
  EXPECT_EQ(gain.best_count(8, 1, 1), 0) << "they are alike";
  EXPECT_EQ(gain.best_count(7, 7, 1), 1);
  count_often(gain, 8, true);
  EXPECT_EQ(gain.best_count(30, 1, 1), 1);
  EXPECT_EQ(gain.best_count(2, 1, 1), 0);
}

// If the token behind the match is right, with 0.4, a draft behind it is with 0.5.
TEST(DraftGainTest, WaitingPaysIfTheDraftsThatItAllowsSaveMore) {
  EXPECT_TRUE(DraftGain({.wait = 0.19}).is_worth_waiting(2, 1, 1));
  EXPECT_FALSE(DraftGain({.wait = 0.21}).is_worth_waiting(2, 1, 1));
  EXPECT_TRUE(DraftGain({.wait = 0.09}).is_worth_waiting(2, 1, 2));
  EXPECT_FALSE(DraftGain({.wait = 0.11}).is_worth_waiting(2, 1, 2));
  EXPECT_FALSE(DraftGain({.token = 0.51}).is_worth_waiting(2, 1, 1)) << "it drafts nothing then";
}

}  // namespace
}  // namespace tessera
