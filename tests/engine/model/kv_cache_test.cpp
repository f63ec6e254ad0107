#include "engine/model/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "kernels/backend.h"

namespace tessera {
namespace {

ModelConfig cache_config() {
  ModelConfig config;
  config.num_layers = 3;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  return config;
}

class KvCacheTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  KvCache cache_{cache_config(), /*num_pages=*/5, /*page_size=*/16, KvDType::kActivation,
                 backend_->operations()};
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
  EXPECT_EQ(KvCache::bytes_per_token(cache_config(), DType::kFloat32), 3u * 2 * 2 * 8 * 4);
  EXPECT_EQ(KvCache::bytes_per_token(cache_config(), DType::kBFloat16), 3u * 2 * 2 * 8 * 2);
}

TEST_F(KvCacheTest, Fp8PagesTakeAByteForAnElement) {
  const int64_t num_pages = 1000;
  KvCache cache(cache_config(), num_pages, 16, KvDType::kFloat8E4M3, backend_->operations());
  EXPECT_TRUE(cache.is_fp8());
  const size_t pages_bytes = num_pages * 16 * 3u * 2 * 2 * 8;
  EXPECT_EQ(pages_bytes,
            num_pages * 16 * KvCache::bytes_per_token(cache_config(), DType::kFloat8E4M3));
  EXPECT_GE(cache.size_bytes(), pages_bytes);
  EXPECT_LE(cache.size_bytes(), pages_bytes + 4096);
}

TEST_F(KvCacheTest, EveryLayerHasScalesOfItsOwn) {
  KvCache cache(cache_config(), 5, 16, KvDType::kFloat8E4M3, backend_->operations());
  std::vector<float> scales = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
  EXPECT_EQ(cache.layers()[2].value_scales.as<float>()[1], 1.0f);
  cache.set_scales({scales.data(), DType::kFloat32, DeviceType::kCpu, {3, 2, 2}},
                   backend_->device());
  EXPECT_EQ(cache.layers()[0].key_scales.as<float>()[1], 2.0f);
  EXPECT_EQ(cache.layers()[1].value_scales.as<float>()[0], 64.0f);
  EXPECT_EQ(cache.layers()[2].key_scales.as<float>()[0], 256.0f);
  EXPECT_EQ(cache.layers()[2].value_scales.as<float>()[1], 2048.0f);
}

// Also where the cache holds fewer bytes than that takes.
TEST_F(KvCacheTest, ACalibrationHasPagesOfTheActivationTypeInTheSameMemory) {
  for (const int64_t num_pages : {1, 5, 1000}) {
    KvCache cache(cache_config(), num_pages, 16, KvDType::kFloat8E4M3, backend_->operations());
    const std::vector<KvPages> pages = cache.calibration_pages();
    ASSERT_EQ(pages.size(), 3u);
    EXPECT_EQ(pages[0].keys.data, cache.layers()[0].keys.data);
    EXPECT_EQ(pages[2].values.dtype, DType::kFloat32);
    const int64_t expected = std::min<int64_t>(num_pages, kCalibrationTokens / 16);
    EXPECT_EQ(pages[2].values.shape, Shape({expected, 2, 16, 8}));
    const auto* const begin = static_cast<const std::byte*>(pages[0].keys.data);
    const auto* const end =
        static_cast<const std::byte*>(pages[2].values.data) + pages[2].values.size_bytes();
    EXPECT_LE(static_cast<size_t>(end - begin), cache.size_bytes());
  }
}

}  // namespace
}  // namespace tessera
