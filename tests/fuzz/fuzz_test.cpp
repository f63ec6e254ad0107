// The short form of fuzzing: every seed and a fixed number of seeded mutations of each target. The
// long form is run.py.
#include <gtest/gtest.h>

#include "kernels/tensor/check.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/oracle.h"

namespace tessera {
namespace {

constexpr int kMutations = 4000;

class Fuzz : public testing::TestWithParam<FuzzTarget> {};

// What `bytes` break; "" when they are answered as they should be.
std::string broken_promise(const FuzzTarget& target, const std::string& bytes) {
  try {
    run(target, bytes);
  } catch (const std::exception& exception) {
    return exception.what();
  }
  return "";
}

TEST_P(Fuzz, SeedsAreAnswered) {
  for (const std::string& seed : GetParam().seeds) {
    EXPECT_EQ(broken_promise(GetParam(), seed), "") << testing::PrintToString(seed);
  }
}

TEST_P(Fuzz, MutationsAreAnswered) {
  Mutator mutator(GetParam(), 1);
  for (int i = 0; i < kMutations; ++i) {
    const std::string bytes = mutator.next();
    ASSERT_EQ(broken_promise(GetParam(), bytes), "") << testing::PrintToString(bytes);
  }
}

// A target whose seeds are all refused, or all read, looks at half of its reader.
TEST_P(Fuzz, SomeSeedsAreReadAndSomeAreRefused) {
  size_t num_refused = 0;
  for (const std::string& seed : GetParam().seeds) {
    try {
      GetParam().read(seed);
    } catch (const std::exception&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 0u);
  EXPECT_LT(num_refused, GetParam().seeds.size());
}

INSTANTIATE_TEST_SUITE_P(, Fuzz, testing::ValuesIn(fuzz_targets()),
                         [](const auto& info) { return info.param.name; });

// The oracle itself: each of these is a bug that a target must not let pass.
TEST(FuzzOracle, SeesWhatBreaksAPromise) {
  const auto breaks = [](void (*read)(std::string_view)) {
    return broken_promise({"toy", read, {}, {}}, "");
  };
  EXPECT_EQ(breaks([](std::string_view) { throw std::out_of_range("of a library"); }),
            "of a library");
  EXPECT_NE(breaks([](std::string_view) { throw Error("a\x1b[2J"); }), "");
  EXPECT_NE(breaks([](std::string_view) { throw Error("a\xC2\x9B"); }), "");
  EXPECT_NE(breaks([](std::string_view) { throw Error("a\xE2\x80\xAE"); }), "");
  EXPECT_NE(breaks([](std::string_view) { throw Error("a\xFF"); }), "");
  EXPECT_NE(breaks([](std::string_view) { throw Error("a", "hint\n"); }), "");
  EXPECT_NE(breaks([](std::string_view) { throw Error(std::string(5000, 'a')); }), "");
  EXPECT_NE(breaks([](std::string_view) { require_utf8("\xC3", "a text"); }), "");
  EXPECT_EQ(breaks([](std::string_view) { throw Error("model: é is not supported", "try é"); }),
            "");
}

}  // namespace
}  // namespace tessera
