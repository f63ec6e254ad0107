#include "engine/model/kv_cache.h"

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
  ASSERT_EQ(cache_.layers().size(), 3u);
  for (const KvPages& layer : cache_.layers()) {
    EXPECT_EQ(layer.keys.shape, Shape({5, 2, 16, 8}));
    EXPECT_EQ(layer.values.shape, Shape({5, 2, 16, 8}));
    starts.insert(layer.keys.data);
    starts.insert(layer.values.data);
  }
  EXPECT_EQ(starts.size(), 6u);
}

TEST_F(KvCacheTest, BytesPerToken) {
  EXPECT_EQ(KvCache::bytes_per_token(small_config(), DType::kFloat32), 3u * 2 * 2 * 8 * 4);
  EXPECT_EQ(KvCache::bytes_per_token(small_config(), DType::kBFloat16), 3u * 2 * 2 * 8 * 2);
}

}  // namespace
}  // namespace tessera
