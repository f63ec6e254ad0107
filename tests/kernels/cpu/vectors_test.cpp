#include "kernels/cpu/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/cpu/vector_levels.h"

namespace tessera {
namespace {

struct Exp2 {
  template <int kLanes>
  VECTOR_INLINE static void run(std::vector<float>& values) {
    typename VectorOf<kLanes>::Floats lanes;
    for (size_t i = 0; i < values.size(); i += kLanes) {
      load(values.data() + i, lanes);
      exp2_of_nonpositive(lanes);
      store(lanes, values.data() + i);
    }
  }
};

std::vector<float> exp2_of(std::vector<float> values) {
  run_vectorized<Exp2>(values);
  return values;
}

TEST(VectorsTest, Exp2IsExactToAboutOneUnit) {
  std::vector<float> values;
  for (int i = 0; i < 1 << 16; ++i) values.push_back(static_cast<float>(i) * -0x1p-16f * 126.0f);
  for_each_vector_level([&] {
    const std::vector<float> results = exp2_of(values);
    for (size_t i = 0; i < values.size(); ++i) {
      const double exact = std::exp2(static_cast<double>(values[i]));
      ASSERT_LE(std::abs(results[i] - exact), 1.5 * 0x1p-24 * 2 * exact) << "2^" << values[i];
    }
  });
}

TEST(VectorsTest, Exp2OfLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(16, -127.0f);
  values[0] = 0.0f;
  values[1] = -kInfinity;
  values[2] = std::numeric_limits<float>::lowest();
  values[3] = std::numeric_limits<float>::quiet_NaN();
  for_each_vector_level([&] {
    const std::vector<float> results = exp2_of(values);
    EXPECT_EQ(results[0], 1.0f);
    EXPECT_EQ(results[1], 0.0f);
    EXPECT_EQ(results[2], 0.0f);
    EXPECT_TRUE(std::isnan(results[3]));
    EXPECT_EQ(results[4], 0.0f);
  });
}

// Of kMost vectors, or of as many as they have lanes.
template <int kMost>
struct SumEach {
  template <int kLanes>
  VECTOR_INLINE static void run(std::vector<float>& sums, int& num_vectors) {
    constexpr int kCount = std::min(kMost, kLanes);
    typename VectorOf<kLanes>::Floats vectors[kCount];
    for (int i = 0; i < kCount; ++i) {
      for (int lane = 0; lane < kLanes; ++lane) {
        vectors[i][lane] = static_cast<float>(100 * i + lane);
      }
    }
    sum_each(vectors);
    num_vectors = kCount;
    sums.assign(kLanes, 0.0f);
    store(vectors[0], sums.data());
  }
};

template <int kMost>
void check_sums() {
  for_each_vector_level([] {
    std::vector<float> sums;
    int num_vectors = 0;
    run_vectorized<SumEach<kMost>>(sums, num_vectors);
    const auto num_lanes = static_cast<int>(sums.size());
    for (int i = 0; i < num_vectors; ++i) {
      const auto expected =
          static_cast<float>(100 * i * num_lanes + num_lanes * (num_lanes - 1) / 2);
      EXPECT_EQ(sums[i * num_lanes / num_vectors], expected) << "vector " << i;
    }
  });
}

TEST(VectorsTest, SumEachOfAsManyVectorsAsLanes) { check_sums<16>(); }

TEST(VectorsTest, SumEachOfFewerVectors) { check_sums<4>(); }

struct Widen {
  template <int kLanes, typename T>
  VECTOR_INLINE static void run(const std::vector<T>& values, std::vector<float>& widened) {
    typename VectorOf<kLanes>::Floats lanes;
    for (size_t i = 0; i < values.size(); i += kLanes) {
      load(values.data() + i, lanes);
      store(lanes, widened.data() + i);
    }
  }
};

// Every number of a type of 8 or 16 bits, subnormal and infinite ones included.
template <typename T>
void check_widening() {
  using Bits = decltype(T::bits);
  std::vector<T> values;
  for (uint32_t bits = 0; bits < 1u << 8 * sizeof(T); ++bits) {
    values.push_back({static_cast<Bits>(bits)});
  }
  for_each_vector_level([&] {
    std::vector<float> widened(values.size());
    run_vectorized<Widen>(values, widened);
    for (size_t i = 0; i < values.size(); ++i) {
      const float expected = to_float(values[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(widened[i])) << "bits " << i;
      } else {
        ASSERT_EQ(widened[i], expected) << "bits " << i;
      }
    }
  });
}

TEST(VectorsTest, BFloat16IsWidenedExactly) { check_widening<BFloat16>(); }

TEST(VectorsTest, Float16IsWidenedExactly) { check_widening<Float16>(); }

TEST(VectorsTest, Float8IsWidenedExactly) { check_widening<Float8E4M3>(); }

}  // namespace
}  // namespace tessera
