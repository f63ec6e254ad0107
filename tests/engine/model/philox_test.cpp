#include "engine/model/philox.h"

#include <gtest/gtest.h>

#include <bit>

namespace tessera {
namespace {

// Known answers published with the Random123 library of the paper's authors.
TEST(Philox, KnownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawsDependOnSeedAndIndexOnly) {
  EXPECT_EQ(random_bits(7, 3), random_bits(7, 3));
  EXPECT_NE(random_bits(7, 3), random_bits(7, 4));
  EXPECT_NE(random_bits(7, 3), random_bits(8, 3));
  EXPECT_NE(random_bits(7, 0), random_bits(uint64_t{7} << 32, 0));
}

TEST(Philox, BitsAreBalanced) {
  int64_t ones = 0;
  constexpr int kDraws = 10000;
  for (uint64_t i = 0; i < kDraws; ++i) ones += std::popcount(random_bits(42, i));
  // 640,000 fair bits: the standard deviation is 400; five of them.
  EXPECT_NEAR(static_cast<double>(ones), 32.0 * kDraws, 2000.0);
}

}  // namespace
}  // namespace tessera
