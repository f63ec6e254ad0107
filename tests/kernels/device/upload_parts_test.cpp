#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/kernels/for_each_backend.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// Values that every floating-point type holds exactly, different in neighbouring parts.
float value_at(int64_t index) { return static_cast<float>(index % 251) - 125.0f; }

class UploadPartsTest : public BackendTest {
 protected:
  struct Parts {
    std::vector<UploadPart> uploads;
    std::vector<int64_t> begins;  // first element of each
  };

  // `destination` in parts of at most part_elements.
  static Parts cut(const Tensor& destination, DType source_dtype, int64_t part_elements) {
    Parts parts;
    for (int64_t begin = 0; begin < destination.dim(0); begin += part_elements) {
      const int64_t end = std::min(begin + part_elements, destination.dim(0));
      parts.uploads.push_back({destination.slice(begin, end), source_dtype});
      parts.begins.push_back(begin);
    }
    return parts;
  }

  template <typename T>
  void check(DType dtype, int64_t num_elements, int64_t part_elements, T (*convert)(float)) const {
    const DeviceTensor destination = poisoned(backend(), dtype, {num_elements});
    device().synchronize();  // the poison is there: upload_parts() does not wait for it
    const Parts parts = cut(destination.view, DTypeOf<T>::value, part_elements);
    std::vector<size_t> order;
    device().upload_parts(
        parts.uploads,
        [&](size_t index, std::byte* target) {
          const int64_t count = parts.uploads[index].destination.dim(0);
          for (int64_t i = 0; i < count; ++i) {
            const T value = convert(value_at(parts.begins[index] + i));
            std::memcpy(target + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
          }
        },
        [&](size_t index) { order.push_back(index); });
    ASSERT_EQ(order.size(), parts.uploads.size());
    EXPECT_TRUE(std::ranges::is_sorted(order));
    const std::vector<double> actual = host(destination);
    for (int64_t i = 0; i < num_elements; ++i) {
      ASSERT_EQ(actual[static_cast<size_t>(i)], value_at(i)) << "element " << i;
    }
  }

  // Parts of one element each, for what goes wrong.
  Parts small_parts(const DeviceTensor& destination) const {
    return cut(destination.view, DType::kFloat32, 1);
  }
};

TEST_P(UploadPartsTest, FillsAndConverts) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(testing::Message() << "to " << to_string(dtype));
    check<float>(dtype, 100'003, 1000, [](float value) { return value; });
    check<Float16>(dtype, 100'003, 4096, to_float16);
    check<BFloat16>(dtype, 257, 1000, to_bfloat16);
  }
}

TEST_P(UploadPartsTest, TakesPartsOfFullSizeManyTimesTheRing) {
  const int64_t part_elements = kMaxUploadPartBytes / 2;
  check<BFloat16>(DType::kBFloat16, 40 * part_elements + 1, part_elements, to_bfloat16);
}

TEST_P(UploadPartsTest, ThrowsTheFailureOfTheFirstPart) {
  const DeviceTensor destination = poisoned(backend(), DType::kFloat32, {64});
  const Parts parts = small_parts(destination);
  for (int round = 0; round < 10; ++round) {
    size_t num_read = 0;
    try {
      device().upload_parts(
          parts.uploads,
          [&](size_t index, std::byte*) {
            if (index == 30) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            if (index >= 30) throw Error(concat("part ", index));
          },
          [&](size_t) { ++num_read; });
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "part 30");
    }
    EXPECT_EQ(num_read, 30u);
  }
}

TEST_P(UploadPartsTest, TheCallerMayStopIt) {
  const DeviceTensor destination = poisoned(backend(), DType::kFloat32, {1000});
  const Parts parts = small_parts(destination);
  struct Stop {};
  const auto fill = [](size_t, std::byte* target) { std::memset(target, 0, sizeof(float)); };
  EXPECT_THROW(device().upload_parts(parts.uploads, fill,
                                     [](size_t index) {
                                       if (index == 5) throw Stop{};
                                     }),
               Stop);
  // And the backend works on.
  EXPECT_NO_THROW(device().upload_parts(parts.uploads, fill, [](size_t) {}));
}

TEST_P(UploadPartsTest, RefusesPartsThatAreTooLarge) {
  const int64_t too_many = kMaxUploadPartBytes / 4 + 1;
  const DeviceTensor destination = poisoned(backend(), DType::kFloat32, {too_many});
  const UploadPart part{destination.view, DType::kFloat32};
  try {
    device().upload_parts(
        {&part, 1}, [](size_t, std::byte*) {}, [](size_t) {});
    FAIL() << "was uploaded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(kMaxUploadPartBytes + 4)));
  }
}

TEST_P(UploadPartsTest, NothingToUploadIsFine) {
  EXPECT_NO_THROW(device().upload_parts({}, {}, {}));
}

FOR_EACH_BACKEND(UploadPartsTest);

}  // namespace
}  // namespace tessera
