#include "model_loaders/head_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_loaders/padded_config.h"

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

ModelConfig heads_of(int64_t head_dim, int64_t num_heads, const RotaryLayout& layout) {
  ModelConfig config;
  config.head_dim = head_dim;
  config.num_heads = num_heads;
  config.num_kv_heads = 1;
  config.rotary = layout;
  return config;
}
ModelConfig padded(const ModelConfig& config, int64_t head_dim, int64_t num_heads) {
  return padded_config(config, {.num_heads = num_heads, .head_dim = head_dim});
}

TEST(HeadOrder, ZerosFillBothHalves) {
  const auto order_in = [](int64_t head_dim, int64_t padded_head_dim, const RotaryLayout& layout) {
    return head_order(padded(heads_of(head_dim, 1, layout), padded_head_dim, 1));
  };
  EXPECT_THAT(order_in(4, 8, {}), ElementsAre(0, 1, -1, -1, 2, 3, -1, -1));
  EXPECT_THAT(order_in(4, 6, {.is_interleaved = true}), ElementsAre(0, 2, -1, 1, 3, -1));
  EXPECT_THAT(order_in(8, 12, {.dim = 4}), ElementsAre(0, 1, 4, 5, -1, -1, 2, 3, 6, 7, -1, -1));
  EXPECT_THAT(order_in(4, 4, {}), IsEmpty());
}

TEST(QueryOrder, HeadsOfZerosComeLast) {
  const ModelConfig config = heads_of(2, 2, {});
  EXPECT_THAT(query_order(config), IsEmpty());
  EXPECT_THAT(query_order(padded(config, 4, 2)), IsEmpty());
  EXPECT_THAT(query_order(padded(config, 2, 3)), ElementsAre(0, 1, 2, 3, -1, -1));
  EXPECT_THAT(query_order(padded(config, 4, 3)),
              ElementsAre(0, -1, 1, -1, 2, -1, 3, -1, -1, -1, -1, -1));
}

TEST(QueryOrder, TurnsWhatHeadsTurn) {
  const ModelConfig config = heads_of(4, 1, {.is_interleaved = true});
  EXPECT_THAT(query_order(padded(config, 4, 2)), ElementsAre(0, 2, 1, 3, -1, -1, -1, -1));
}

TEST(ZerosBehind, AreThoseThatAreMissing) {
  EXPECT_THAT(zeros_behind(3, 3), IsEmpty());
  EXPECT_THAT(zeros_behind(3, 5), ElementsAre(0, 1, 2, -1, -1));
}

}  // namespace
}  // namespace tessera
