#include "apps/terminal/progress_bar.h"

#include <gtest/gtest.h>

#include <limits>

namespace tessera {
namespace {

TEST(ProgressLine, LeavesOutWholeFields) {
  const std::string detail = "3/4 files, 1,234 tok/s, ETA 5 s";
  const auto line = [&](size_t width) { return progress_line("read", 0.75, detail, width); };
  const std::string whole = "read [##################------] 75% " + detail;
  EXPECT_EQ(line(200), whole);
  EXPECT_EQ(line(whole.size()), whole);
  const std::string shorter = "read [######--] 75% " + detail;
  EXPECT_EQ(line(whole.size() - 1), shorter);
  EXPECT_EQ(line(shorter.size()), shorter);
  EXPECT_EQ(line(shorter.size() - 1), "read [######--] 75% 3/4 files, 1,234 tok/s");
  EXPECT_EQ(line(41), "read [######--] 75% 3/4 files");
  EXPECT_EQ(line(5), "read ");
}

TEST(ProgressLine, HasNoBarWhereNobodyKnowsTheEnd) {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(progress_line("read", unknown, "3 MB", 80), "read: 3 MB");
  EXPECT_EQ(progress_text("read", unknown, "3 MB"), "read: 3 MB");
  EXPECT_EQ(progress_text("read", 0.999, "3 MB"), "read: 99%, 3 MB");
}

}  // namespace
}  // namespace tessera
