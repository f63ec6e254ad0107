#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

constexpr double kDoubleInfinity = std::numeric_limits<double>::infinity();
constexpr double kDoubleNan = std::numeric_limits<double>::quiet_NaN();

// Numbers whose rounding is delicate in one of the types.
std::vector<double> delicate_values() {
  return {0.0,
          -0.0,
          1.0,
          -1.0,
          257.0,
          259.0,
          2049.0,
          2051.0,
          65504.0,
          65519.0,
          65520.0,
          -70000.0,
          0x1p-14,
          0x1p-24,
          0x1p-25,
          0x1.8p-25,
          0x1p-126,
          0x1p-133,
          0x1p-149,
          3.0e38,
          -3.4e38,
          0x1.01p0,
          0x1.03p0,
          0x1.002p0,
          kDoubleInfinity,
          -kDoubleInfinity,
          kDoubleNan,
          1.0 / 3.0,
          0x1.ffep3,
          0x1.fffp15,
          1e-8,
          -1e-40};
}

class UploadDownloadTest : public BackendTest {
 protected:
  template <typename T>
  void check(const std::vector<T>& source, DType dtype) const {
    const Shape shape{static_cast<int64_t>(source.size())};
    const DeviceTensor destination = poisoned(backend(), dtype, shape);
    std::vector<T> copy = source;
    device().upload(destination, {copy.data(), DTypeOf<T>::value, DeviceType::kCpu, shape});
    std::vector<double> values;
    for (const T value : source) values.push_back(to_float(value));
    const std::vector<double> expected = rounded(values, dtype);
    const std::vector<double> actual = host(destination);
    for (size_t i = 0; i < actual.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(actual[i])) << "element " << i;
      } else {
        EXPECT_EQ(actual[i], expected[i]) << "element " << i << ", from " << values[i];
        EXPECT_EQ(std::signbit(actual[i]), std::signbit(expected[i])) << "element " << i;
      }
    }
  }
};

constexpr DType kFloatTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

TEST_P(UploadDownloadTest, ConvertsDelicateValues) {
  std::vector<float> floats;
  std::vector<Float16> halves;
  std::vector<BFloat16> bfloats;
  for (const double value : delicate_values()) {
    floats.push_back(static_cast<float>(value));
    halves.push_back(to_float16(floats.back()));
    bfloats.push_back(to_bfloat16(floats.back()));
  }
  for (const DType dtype : kFloatTypes) {
    SCOPED_TRACE(testing::Message() << "to " << to_string(dtype));
    check(floats, dtype);
    check(halves, dtype);
    check(bfloats, dtype);
  }
}

TEST_P(UploadDownloadTest, ConvertsEveryLength) {
  RandomValues random(1);
  for (const int64_t size : {1, 3, 7, 8, 9, 255, 257, 100003}) {
    std::vector<float> source;
    for (const double value : random.normal(size)) source.push_back(static_cast<float>(value));
    for (const DType dtype : kFloatTypes) check(source, dtype);
  }
}

TEST_P(UploadDownloadTest, SourceMayBeReusedAtOnce) {
  constexpr int64_t kSize = 1 << 20;
  for (const DType dtype : kFloatTypes) {
    std::vector<float> source(kSize, 1.0f);
    const DeviceTensor destination = poisoned(backend(), dtype, {kSize});
    device().upload(destination, {source.data(), DType::kFloat32, DeviceType::kCpu, {kSize}});
    source.assign(kSize, 2.0f);
    EXPECT_EQ(host(destination), std::vector<double>(kSize, 1.0)) << to_string(dtype);
  }
}

TEST_P(UploadDownloadTest, CopiesPartsOfATensor) {
  const DeviceTensor whole = floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 2});
  std::vector<float> replacement = {20, 21, 30, 31};
  device().upload(whole.view.slice(1, 3),
                  {replacement.data(), DType::kFloat32, DeviceType::kCpu, {2, 2}});
  EXPECT_EQ(host(whole), (std::vector<double>{0, 1, 20, 21, 30, 31, 6, 7, 8, 9}));
  EXPECT_EQ(host(whole.view.slice(2, 4)), (std::vector<double>{30, 31, 6, 7}));
}

TEST_P(UploadDownloadTest, InputsOfEveryLength) {
  // Up to 16,384 words a kernel copies them on CUDA, 1,024 in a block.
  for (const int64_t size : {1, 3, 4, 5, 1023, 1024, 1025, 16383, 16384, 16385, 40000}) {
    const DeviceTensor whole = poisoned(backend(), DType::kInt32, {size + 4});
    std::vector<int32_t> values(static_cast<size_t>(size));
    for (int32_t round = 0; round < 3; ++round) {
      for (int32_t i = 0; i < size; ++i) values[static_cast<size_t>(i)] = i * 3 + round;
      device().upload_inputs(whole.view.slice(0, size),
                             {values.data(), DType::kInt32, DeviceType::kCpu, {size}});
      const std::vector<double> expected(values.begin(), values.end());
      values.assign(values.size(), -1);  // may be reused at once
      EXPECT_EQ(host(whole.view.slice(0, size)), expected);
    }
    const DeviceTensor untouched = poisoned(backend(), DType::kInt32, {4});
    EXPECT_EQ(host(whole.view.slice(size, size + 4)), host(untouched));
  }
}

TEST_P(UploadDownloadTest, InputsAreNotConverted) {
  std::vector<float> source = {1.0f, 2.0f};
  const Tensor view{source.data(), DType::kFloat32, DeviceType::kCpu, {2}};
  const DeviceTensor halves = poisoned(backend(), DType::kFloat16, {2});
  EXPECT_THROW(device().upload_inputs(halves, view), Error);
  const DeviceTensor three = poisoned(backend(), DType::kFloat32, {3});
  EXPECT_THROW(device().upload_inputs(three, view), Error);
}

TEST_P(UploadDownloadTest, AStartedDownloadIsWhatTheTensorWas) {
  const DeviceTensor tensor = integers({0, 0, 0}, {3});
  const auto upload = [&](std::vector<int32_t> values) {
    device().upload_inputs(tensor, {values.data(), DType::kInt32, DeviceType::kCpu, {3}});
  };
  const auto finish = [&](DownloadTicket ticket) {
    std::vector<int32_t> values(3);
    device().finish_download({values.data(), DType::kInt32, DeviceType::kCpu, {3}}, ticket);
    return values;
  };
  std::vector<DownloadTicket> tickets;
  for (int32_t i = 0; i < 5; ++i) {
    upload({i, i + 10, i + 20});
    tickets.push_back(device().start_download(tensor));
    upload({-1, -1, -1});
    if (i == 0) continue;
    const int32_t last = i - 1;
    EXPECT_EQ(finish(tickets[static_cast<size_t>(last)]),
              (std::vector<int32_t>{last, last + 10, last + 20}));
  }
  EXPECT_EQ(finish(tickets[4]), (std::vector<int32_t>{4, 14, 24}));
  EXPECT_THROW(finish(tickets[2]), Error) << "two have been started since";
  EXPECT_THROW(finish(tickets[4] + 1), Error);
  const DeviceTensor large = poisoned(backend(), DType::kInt32, {4097});
  EXPECT_THROW(device().start_download(large), Error);
}

TEST_P(UploadDownloadTest, RefusesToConvertIntegers) {
  const DeviceTensor destination = floats({0, 0}, {2});
  std::vector<int32_t> source = {1, 2};
  EXPECT_THROW(device().upload(destination, {source.data(), DType::kInt32, DeviceType::kCpu, {2}}),
               Error);
}

FOR_EACH_BACKEND(UploadDownloadTest);

}  // namespace
}  // namespace tessera
