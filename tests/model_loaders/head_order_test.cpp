#include "model_loaders/head_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int64_t> order(int64_t head_dim, const RotaryLayout& layout) {
  ModelConfig config;
  config.head_dim = head_dim;
  config.rotary = layout;
  return head_order(config);
}

TEST(HeadOrder, HalvesThatTurnTogetherStay) {
  EXPECT_THAT(order(8, {}), IsEmpty());
  EXPECT_THAT(order(8, {.dim = 8}), IsEmpty());
}

TEST(HeadOrder, NeighboursGoToTheSamePlaceOfBothHalves) {
  EXPECT_THAT(order(8, {.is_interleaved = true}), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
}

// 0 turns with 2, 1 with 3; the others fill both halves.
TEST(HeadOrder, PairsOfAPartComeFirst) {
  EXPECT_THAT(order(8, {.dim = 4}), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THAT(order(8, {.dim = 6}), ElementsAre(0, 1, 2, 6, 3, 4, 5, 7));
}

TEST(HeadOrder, NeighboursOfAPart) {
  EXPECT_THAT(order(8, {.dim = 4, .is_interleaved = true}), ElementsAre(0, 2, 4, 5, 1, 3, 6, 7));
}

}  // namespace
}  // namespace tessera
