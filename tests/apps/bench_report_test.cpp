#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/bench/report.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

BenchReport report_of(double bytes_per_second, double read_bandwidth) {
  BenchReport report;
  report.read_bandwidth = read_bandwidth;
  report.results.push_back({.bench_case = {.batch_size = 1},
                            .prefill_tokens_per_second = summarize_repetitions({90.0, 100.0}),
                            .decode_tokens_per_second = summarize_repetitions({10.0}),
                            .bytes_per_second = bytes_per_second});
  return report;
}

TEST(BenchReportTest, MoreThanMemoryCanReadIsExplained) {
  EXPECT_THAT(bench_table(report_of(15e9, 10e9)), HasSubstr("150.0%\n\nabove 100% of memory"));
  EXPECT_THAT(bench_table(report_of(9e9, 10e9)), Not(HasSubstr("above")));
}

TEST(BenchReportTest, OneRepetitionHasNoSpread) {
  EXPECT_EQ(measurement_text(summarize_repetitions({10.0})), "10.0");
  EXPECT_EQ(measurement_json(summarize_repetitions({10.0})).dump(),
            R"({"median":10.0,"spread":null})");
  EXPECT_EQ(measurement_text(summarize_repetitions({99.0, 101.0, 100.0})), "100.0 ±1.0%");
}

}  // namespace
}  // namespace tessera
