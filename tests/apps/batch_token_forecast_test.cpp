#include <gtest/gtest.h>

#include "apps/batch/token_forecast.h"

namespace tessera {
namespace {

TEST(TokenForecastTest, KnowsNothingBeforeARequestBegins) {
  TokenForecast forecast;
  EXPECT_EQ(forecast.part_done(0, 0), std::nullopt);
  forecast.add(100);
  EXPECT_EQ(forecast.part_done(0, 0), std::nullopt);
  forecast.begin(100, 50, 1);
  EXPECT_EQ(forecast.part_done(0, 0), std::nullopt) << "nothing is computed: no speed yet";
}

TEST(TokenForecastTest, APromptThatIsReadCounts) {
  TokenForecast forecast;
  forecast.add(100);
  forecast.begin(100, 900, 1);
  EXPECT_DOUBLE_EQ(forecast.part_done(450, 0).value(), 0.45);
  EXPECT_DOUBLE_EQ(forecast.part_done(900, 50).value(), 0.95);
  forecast.end(100, 1, 60);
  EXPECT_DOUBLE_EQ(forecast.part_done(900, 60).value(), 1.0);
}

TEST(TokenForecastTest, OthersAreExpectedToBeLikeThoseThatAreKnown) {
  TokenForecast forecast;
  for (int i = 0; i < 4; ++i) forecast.add(100);
  forecast.begin(100, 40, 1);
  forecast.begin(100, 60, 1);
  forecast.end(100, 1, 25);
  // Answers end after a quarter of their limit: 25 tokens of three more, and two prompts of 50.
  EXPECT_DOUBLE_EQ(forecast.part_done(100, 25).value(), 125.0 / (125.0 + 75.0 + 100.0));
  forecast.leave_out(100);
  EXPECT_DOUBLE_EQ(forecast.part_done(100, 25).value(), 125.0 / (125.0 + 50.0 + 50.0));
}

TEST(TokenForecastTest, LongAnswersThatCameFirstDoNotCountForShortOnes) {
  TokenForecast forecast;
  forecast.add(1000);
  for (int i = 0; i < 10; ++i) forecast.add(10);
  forecast.begin(1000, 10, 1);
  forecast.end(1000, 1, 1000);
  EXPECT_DOUBLE_EQ(forecast.part_done(10, 1000).value(), 1010.0 / (1010.0 + 100.0 + 100.0));
}

TEST(TokenForecastTest, AnswersWithoutALimitAreLikeOthersWithoutOne) {
  TokenForecast forecast;
  forecast.add(0);
  forecast.add(0);
  forecast.add(10);
  forecast.begin(0, 20, 1);
  EXPECT_EQ(forecast.part_done(20, 5), std::nullopt) << "none has ended";
  forecast.end(0, 1, 30);
  EXPECT_DOUBLE_EQ(forecast.part_done(20, 30).value(), 50.0 / (50.0 + 30.0 + 10.0 + 40.0));
}

TEST(TokenForecastTest, EveryChoiceIsAnAnswer) {
  TokenForecast forecast;
  forecast.add(100);
  forecast.add(100);
  forecast.begin(100, 50, 3);
  EXPECT_DOUBLE_EQ(forecast.part_done(50, 0).value(), 50.0 / (50.0 + 600.0 + 50.0));
}

TEST(TokenForecastTest, AnAnswerThatIsTooLongAlreadyGoesOn) {
  TokenForecast forecast;
  for (int64_t limit : {100, 100}) forecast.add(limit);
  for (int64_t limit : {100, 100}) forecast.begin(limit, 10, 1);
  forecast.end(100, 1, 10);
  // Ten tokens were expected of the other one too.
  EXPECT_DOUBLE_EQ(forecast.part_done(20, 10 + 4).value(), 34.0 / (34.0 + 6.0));
  EXPECT_DOUBLE_EQ(forecast.part_done(20, 10 + 10).value(), 1.0);
  EXPECT_DOUBLE_EQ(forecast.part_done(20, 10 + 40).value(), 70.0 / (70.0 + 30.0));
  EXPECT_DOUBLE_EQ(forecast.part_done(20, 10 + 90).value(), 120.0 / (120.0 + 10.0)) << "its limit";
}

TEST(TokenForecastTest, AnAnswerWithoutALimitMayGoOnForLong) {
  TokenForecast forecast;
  for (int i = 0; i < 2; ++i) forecast.add(0);
  for (int i = 0; i < 2; ++i) forecast.begin(0, 10, 1);
  forecast.end(0, 1, 30);
  EXPECT_DOUBLE_EQ(forecast.part_done(20, 30 + 1030).value(), 1080.0 / (1080.0 + 1000.0));
}

}  // namespace
}  // namespace tessera
