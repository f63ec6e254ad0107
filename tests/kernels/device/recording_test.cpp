// Operations that are recorded and launched again.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

class RecordingTest : public BackendTest {
 protected:
  static constexpr int64_t kTokens = 3;
  static constexpr int64_t kFeatures = 64;
  static constexpr int64_t kOutFeatures = 16;

  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    RandomValues random(1);
    x_ = floats(random.normal(kTokens * kFeatures), {kTokens, kFeatures});
    norm_ = floats(random.normal(kFeatures), {kFeatures});
    weight_ = activations(random.normal(kOutFeatures * kFeatures), {kOutFeatures, kFeatures});
    normed_ = poisoned(backend(), activation(), {kTokens, kFeatures});
    out_ = poisoned(backend(), DType::kFloat32, {kTokens, kOutFeatures});
    norm_and_multiply();  // loads the kernels
  }

  void norm_and_multiply() const {
    operations().rms_norm(normed_, x_, norm_, 1e-6f);
    operations().linear(out_, normed_, weight_);
  }
  std::vector<uint8_t> result() const { return bytes_of(backend(), out_); }

  DeviceTensor x_, norm_, weight_, normed_, out_;
};

TEST_P(RecordingTest, HasTheEffectOfTheOperationsOnWhatTheirTensorsHoldThen) {
  const std::vector<uint8_t> before = result();
  int calls = 0;
  const auto recording = device().record([&] {
    ++calls;
    norm_and_multiply();
  });
  if (recording == nullptr) {
    EXPECT_EQ(calls, 0) << "what is not recorded was called";
    EXPECT_FALSE(device().is_asynchronous());
    return;
  }
  EXPECT_EQ(calls, 1);
  RandomValues random(2);
  for (int i = 0; i < 2; ++i) {
    const std::vector<double> values = random.normal(kTokens * kFeatures);
    std::vector<float> inputs(values.begin(), values.end());
    const Shape& shape = x_.view.shape;
    device().upload_inputs(x_, {inputs.data(), DType::kFloat32, DeviceType::kCpu, shape});
    recording->launch();
    const std::vector<uint8_t> launched = result();
    EXPECT_NE(launched, before);
    norm_and_multiply();
    EXPECT_EQ(launched, result());
  }
  EXPECT_EQ(calls, 1);
}

TEST_P(RecordingTest, NothingHappensWhileItIsRecorded) {
  out_ = poisoned(backend(), DType::kFloat32, {kTokens, kOutFeatures});
  const std::vector<uint8_t> before = result();
  const auto recording = device().record([&] { norm_and_multiply(); });
  EXPECT_EQ(result(), before);
}

TEST_P(RecordingTest, WhatOperationsThrowIsThrownAndTheDeviceGoesOn) {
  const std::vector<uint8_t> before = result();
  const auto record = [&] {
    return device().record([&] {
      norm_and_multiply();
      throw std::runtime_error("enough");
    });
  };
  if (device().is_asynchronous()) {
    EXPECT_THROW(record(), std::runtime_error);
  } else {
    EXPECT_EQ(record(), nullptr);
  }
  out_ = poisoned(backend(), DType::kFloat32, {kTokens, kOutFeatures});
  norm_and_multiply();
  EXPECT_EQ(result(), before);
}

FOR_EACH_BACKEND(RecordingTest);

}  // namespace
}  // namespace tessera
