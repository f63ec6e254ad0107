#include "tests/kernels/deadline.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(DeadlineTest, LetsWaitsEndInTime) { const Deadline deadline("a short wait"); }

TEST(DeadlineTest, EndsTheProcessWithTheNameOfTheCase) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    const Deadline deadline("a wait without end", std::chrono::milliseconds(20));
    std::this_thread::sleep_for(std::chrono::minutes(1));
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(Deadline::kExitCode),
              "DeadlineTest.EndsTheProcess.*: a wait without end: not done after 20 ms");
}

}  // namespace
}  // namespace tessera
