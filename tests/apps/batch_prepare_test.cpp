#include <gtest/gtest.h>

#include <set>

#include "apps/batch/prepare.h"

namespace tessera {
namespace {

TEST(PreparedRequest, ChoicesOfNeighbouringSeedsDrawWithSeedsOfTheirOwn) {
  constexpr uint64_t kNumSeeds = 100;
  constexpr int64_t kNumChoices = 128;
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    PreparedRequest request;
    request.params.seed = seed;
    EXPECT_EQ(request.params_of(0).seed, seed);
    for (int64_t choice = 0; choice < kNumChoices; ++choice) {
      seeds.insert(request.params_of(choice).seed);
    }
  }
  EXPECT_EQ(seeds.size(), kNumSeeds * kNumChoices);
}

}  // namespace
}  // namespace tessera
