#include "kernels/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/tensor/buffer.h"
#include "tests/kernels/e4m3.h"

namespace tessera {
namespace {

TEST(DType, HasItsSizeAndNoOtherHasOne) {
  EXPECT_EQ(size_of(DType::kFloat32), sizeof(float));
  EXPECT_EQ(size_of(DType::kFloat16), sizeof(Float16));
  EXPECT_EQ(size_of(DType::kBFloat16), sizeof(BFloat16));
  EXPECT_EQ(size_of(DType::kInt32), sizeof(int32_t));
  EXPECT_EQ(size_of(DType::kFloat8E4M3), sizeof(Float8E4M3));
  EXPECT_THROW(size_of(static_cast<DType>(77)), Error);
}

TEST(DType, Float16RoundTripsEveryValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 half{static_cast<uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(to_float(to_float16(value))));
    } else {
      EXPECT_EQ(to_float16(value).bits, half.bits);
    }
  }
}

TEST(DType, Float16RoundsToNearestEven) {
  EXPECT_EQ(to_float(to_float16(2049.0f)), 2048.0f);  // halfway, to even
  EXPECT_EQ(to_float(to_float16(2051.0f)), 2052.0f);
  EXPECT_EQ(to_float(to_float16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(to_float(to_float16(65520.0f))));
  EXPECT_EQ(to_float(to_float16(0x1p-25f)), 0.0f);        // half the smallest subnormal
  EXPECT_EQ(to_float(to_float16(0x1.8p-25f)), 0x1p-24f);  // above half
  EXPECT_EQ(std::signbit(to_float(to_float16(-0.0f))), true);
}

TEST(DType, Float8E4M3IsItsDefinition) {
  for (int bits = 0; bits < 256; ++bits) {
    const Float8E4M3 code{static_cast<uint8_t>(bits)};
    const double expected = e4m3_value(code.bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(to_float(code)));
      EXPECT_EQ(to_float8_e4m3(to_float(code)).bits & 0x7f, kNanE4M3);
    } else {
      EXPECT_EQ(to_float(code), expected);
      EXPECT_EQ(to_float8_e4m3(to_float(code)).bits, bits);
    }
  }
}

// At every number, half way to the next, and a little off, below the smallest and above the
// largest.
TEST(DType, Float8E4M3RoundsToNearestEven) {
  const auto check = [](float value) {
    EXPECT_EQ(to_float8_e4m3(value).bits, nearest_e4m3(value)) << value;
    EXPECT_EQ(to_float8_e4m3(-value).bits, nearest_e4m3(-value)) << -value;
  };
  for (uint8_t code = 0; code < 0x7e; ++code) {
    const auto low = static_cast<float>(e4m3_value(code));
    const auto high = static_cast<float>(e4m3_value(code + 1));
    const float middle = (low + high) / 2.0f;
    for (const float value : {low, middle}) {
      for (const float to : {-1.0f, value, 1e9f}) check(std::nextafter(value, to));
    }
  }
  for (const float value : {0.0f, 0x1p-149f, 0x1p-40f, 447.0f, 448.0f, 463.0f, 464.0f, 1e30f}) {
    check(value);
  }
  check(std::numeric_limits<float>::infinity());
}

TEST(DType, BFloat16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 value{static_cast<uint16_t>(bits)};
    if (!std::isnan(to_float(value))) {
      EXPECT_EQ(to_bfloat16(to_float(value)).bits, value.bits);
    }
  }
  EXPECT_EQ(to_float(to_bfloat16(257.0f)), 256.0f);
  EXPECT_EQ(to_float(to_bfloat16(259.0f)), 260.0f);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::nanf("")))));
}

TEST(CheckedMath, RefusesOverflow) {
  EXPECT_EQ(checked_multiply<int64_t>(3, 4, "size"), 12);
  EXPECT_THROW(checked_multiply<int64_t>(int64_t{1} << 40, int64_t{1} << 40, "size"), Error);
  EXPECT_THROW(checked_multiply<size_t>(~size_t{0}, 2, "size"), Error);
  EXPECT_THROW(checked_add<size_t>(~size_t{0}, 1, "size"), Error);
  EXPECT_THROW(checked_round_up<size_t>(~size_t{0} - 3, 256, "size"), Error);
  EXPECT_EQ(checked_round_up<size_t>(257, 256, "size"), 512u);
  EXPECT_EQ(ceil_divide(0, 4), 0);
  EXPECT_EQ(ceil_divide(5, 4), 2);
}

TEST(Shape, CountsAndRefuses) {
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).num_elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).num_elements(), 0);
  EXPECT_THROW((Shape{1, -1}), Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}).num_elements(), Error);
  EXPECT_EQ(concat(Shape{2, 3}), "[2, 3]");
}

TEST(Tensor, SlicesRowsAndChecksTypes) {
  std::vector<float> values(12);
  const Tensor tensor{values.data(), DType::kFloat32, DeviceType::kCpu, {4, 3}};
  EXPECT_EQ(tensor.slice(1, 3).as<float>(), values.data() + 3);
  EXPECT_EQ(tensor.slice(1, 3).shape, Shape({2, 3}));
  EXPECT_EQ(tensor.slice(4, 4).num_elements(), 0);
  EXPECT_THROW(tensor.slice(3, 5), Error);
  EXPECT_THROW(tensor.as<int32_t>(), Error);
  EXPECT_EQ(tensor.reshape({2, 6}).dim(1), 6);
  EXPECT_THROW(tensor.reshape({5}), Error);
}

TEST(Buffer, ReleasesOnce) {
  int releases = 0;
  int memory = 0;
  {
    Buffer first(&memory, sizeof(memory), DeviceType::kCpu, [&](void*) { ++releases; });
    Buffer second(std::move(first));
    Buffer third;
    third = std::move(second);
    EXPECT_EQ(third.data(), &memory);
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
}

TEST(Arena, MeasuresThenAllocatesTheSameLayout) {
  const auto lay_out = [](Arena& arena) {
    arena.take("a", DType::kBFloat16, {3});
    return arena.take("b", DType::kFloat32, {100});
  };
  Arena measure;
  EXPECT_TRUE(lay_out(measure).empty());
  EXPECT_EQ(measure.used_bytes(), 256u + 512u);

  std::vector<std::byte> memory(measure.used_bytes());
  const Buffer buffer(memory.data(), memory.size(), DeviceType::kCpu, {});
  Arena arena(buffer);
  EXPECT_EQ(lay_out(arena).data, memory.data() + 256);
  try {
    arena.take("one too many", DType::kFloat32, {1});
    FAIL() << "took more than there is";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'one too many'"));
  }
}

TEST(Counted, IsPluralUnlessThereIsOne) {
  EXPECT_EQ(counted(0, "byte"), "0 bytes");
  EXPECT_EQ(counted(1, "byte"), "1 byte");
  EXPECT_EQ(counted(size_t{2}, "byte"), "2 bytes");
  EXPECT_EQ(counted(1, "tensor is", "tensors are"), "1 tensor is");
  EXPECT_EQ(counted(9, "tensor is", "tensors are"), "9 tensors are");
}

TEST(DeviceIdTest, TellsGpusApart) {
  const DeviceId first = DeviceType::kCuda;
  const DeviceId second{DeviceType::kCuda, 1};
  EXPECT_NE(first, second);
  EXPECT_EQ(first, DeviceId(DeviceType::kCuda, 0));
  EXPECT_EQ(to_string(first), "cuda");
  EXPECT_EQ(to_string(second), "cuda:1");
  EXPECT_EQ(to_string(DeviceId{}), "cpu");
}

}  // namespace
}  // namespace tessera
