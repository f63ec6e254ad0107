#include "engine/model/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/backend.h"

namespace tessera {
namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.num_layers = 3;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  return config;
}

class KvCacheTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  KvCache cache_{small_config(), /*num_pages=*/5, /*page_size=*/16, backend_->operations()};
};

TEST_F(KvCacheTest, LayersAreDistinctAndShaped) {
  std::set<void*> starts;
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cache_.layer(i).keys.shape, Shape({5, 2, 16, 8}));
    EXPECT_EQ(cache_.layer(i).values.shape, Shape({5, 2, 16, 8}));
    starts.insert(cache_.layer(i).keys.data);
    starts.insert(cache_.layer(i).values.data);
  }
  EXPECT_EQ(starts.size(), 6u);
}

TEST_F(KvCacheTest, GrowsByPagesAndGivesThemBack) {
  BlockTable table;
  cache_.grow(table, 1);
  EXPECT_EQ(table.size(), 1u);
  cache_.grow(table, 16);
  EXPECT_EQ(table.size(), 1u);
  cache_.grow(table, 17);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(cache_.num_free_pages(), 3);
  cache_.shrink(table, 16);
  EXPECT_EQ(table.size(), 1u);
  cache_.shrink(table, 0);
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(cache_.num_free_pages(), 5);
}

TEST_F(KvCacheTest, NeverHandsAPageToTwoSequences) {
  BlockTable first, second;
  cache_.grow(first, 33);
  cache_.grow(second, 32);
  std::set<int32_t> pages(first.begin(), first.end());
  pages.insert(second.begin(), second.end());
  EXPECT_EQ(pages.size(), 5u);
  EXPECT_EQ(cache_.num_free_pages(), 0);
}

TEST_F(KvCacheTest, SlotIsPageTimesSizePlusRow) {
  BlockTable table;
  cache_.grow(table, 40);
  EXPECT_EQ(cache_.slot(table, 0), table[0] * 16);
  EXPECT_EQ(cache_.slot(table, 15), table[0] * 16 + 15);
  EXPECT_EQ(cache_.slot(table, 16), table[1] * 16);
  EXPECT_EQ(cache_.slot(table, 39), table[2] * 16 + 7);
}

TEST_F(KvCacheTest, RefusesMoreThanItHas) {
  BlockTable table;
  try {
    cache_.grow(table, 6 * 16);
    FAIL() << "grew beyond its pages";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("5 free pages, 6 are needed"));
  }
  EXPECT_EQ(cache_.num_free_pages(), 5);
}

TEST_F(KvCacheTest, BytesPerToken) {
  EXPECT_EQ(KvCache::bytes_per_token(small_config(), DType::kFloat32), 3u * 2 * 2 * 8 * 4);
  EXPECT_EQ(KvCache::bytes_per_token(small_config(), DType::kBFloat16), 3u * 2 * 2 * 8 * 2);
}

}  // namespace
}  // namespace tessera
