#include <gtest/gtest.h>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

class TakeIdsTest : public BackendTest {};

// More than a block of threads has, in any order, some more than once, and some ids stay.
TEST_P(TakeIdsTest, TakesDrawnTokensByIndexAndLeavesTheOthers) {
  RandomValues random(1);
  for (const int64_t num_drawn : {1, 5, 300}) {
    const auto drawn = random.integers(num_drawn, 0, 100000);
    for (const int64_t num_ids : {1, 7, 256, 257, 600}) {
      const auto ids = random.integers(num_ids, 0, 100000);
      const auto from = random.integers(num_ids, -1, static_cast<int32_t>(num_drawn) - 1);
      std::vector<double> expected(ids.begin(), ids.end());
      for (size_t i = 0; i < expected.size(); ++i) {
        if (from[i] >= 0) expected[i] = drawn[static_cast<size_t>(from[i])];
      }
      const DeviceTensor taken = integers(ids, {num_ids});
      operations().take_ids(taken, integers(from, {num_ids}), integers(drawn, {num_drawn}));
      EXPECT_EQ(host(taken), expected) << num_ids << " of " << num_drawn;
    }
  }
}

FOR_EACH_BACKEND(TakeIdsTest);

}  // namespace
}  // namespace tessera
