// What of the calls becomes the summary.
#include "apps/summarize/report.h"

#include <gtest/gtest.h>

#include "apps/summarize/cost.h"

namespace tessera {
namespace {

CallRecord call(std::vector<size_t> merged, const std::string& answer,
                StopReason reason = StopReason::kEndOfSequence) {
  CallRecord record;
  record.round = merged.empty() ? 0 : 1;
  record.merged = std::move(merged);
  record.result.stop_reason = reason;
  record.answer = answer;
  return record;
}

TEST(Report, SummariesOfAFailedMergeStandWhereTheirPartsDo) {
  Report report;
  report.calls = {call({}, "a"),      call({}, "b"),
                  call({}, "c"),      call({}, "d"),
                  call({0, 1}, "ab"), call({2, 3}, "c", StopReason::kNonFiniteLogits)};
  EXPECT_EQ(report.unmerged_calls(), (std::vector<size_t>{4, 2, 3}));
  EXPECT_EQ(report.summary(), "ab\n\nc\n\nd");
  EXPECT_FALSE(report.is_complete());
}

TEST(Report, OneCallKeepsWhatItHadSaidWhenItWasStopped) {
  Report report;
  report.was_interrupted = true;
  report.calls = {call({}, "half of", StopReason::kCancelled)};
  EXPECT_EQ(report.summary(), "half of");
  EXPECT_EQ(loss_lines(report).at(0), "interrupted: the summary breaks off");
  report.calls.push_back(call({}, "another"));
  EXPECT_EQ(report.summary(), "another") << "a part is read whole or not at all";
}

}  // namespace
}  // namespace tessera
