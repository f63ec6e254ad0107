// Work that is given up while a device computes it.
#include <gtest/gtest.h>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

// So many floating-point operations that a device may ask at every stop point, and so many that it
// waits for all of them.
constexpr double kManyFlops[] = {1e13, 1e14};
constexpr int64_t kFeatures = 1024;

class StopPointsTest : public BackendTest {
 protected:
  void TearDown() override {
    if (!IsSkipped()) device().set_stop_question({});
    BackendTest::TearDown();
  }

  // A product and a stop point, `count` times.
  void compute(int count, double flops) const {
    for (int i = 0; i < count; ++i) {
      operations().linear(out_, x_, weight_);
      device().stop_point(flops);
    }
  }

  // Enough that a GPU is not done before it has been asked for the next product.
  int64_t num_tokens() const { return device().is_asynchronous() ? 16384 : 16; }

  void make_tensors() {
    RandomValues random(1);
    x_ = activations(random.normal(num_tokens() * kFeatures), {num_tokens(), kFeatures});
    weight_ = activations(random.normal(kFeatures * kFeatures), {kFeatures, kFeatures});
    out_ = poisoned(backend(), DType::kFloat32, {num_tokens(), kFeatures});
  }

  DeviceTensor x_, weight_, out_;
};

TEST_P(StopPointsTest, AYesEndsTheWorkAndWhatFollowsIsComputed) {
  make_tensors();
  for (const double flops : kManyFlops) {
    compute(1, flops);
    const std::vector<uint8_t> expected = bytes_of(backend(), out_);
    int num_asked = 0;
    device().set_stop_question([&] { return ++num_asked == 3; });
    EXPECT_THROW(compute(1000, flops), Stopped);
    EXPECT_EQ(num_asked, 3) << "asked again after a yes";
    device().set_stop_question({});
    out_ = poisoned(backend(), DType::kFloat32, {num_tokens(), kFeatures});
    compute(1, flops);
    EXPECT_EQ(bytes_of(backend(), out_), expected);
    EXPECT_EQ(num_asked, 3) << "asked although the question is gone";
  }
}

TEST_P(StopPointsTest, ANoChangesNothing) {
  make_tensors();
  compute(1, 0.0);
  const std::vector<uint8_t> expected = bytes_of(backend(), out_);
  for (const double flops : kManyFlops) {
    int num_asked = 0;
    device().set_stop_question([&] {
      ++num_asked;
      return false;
    });
    out_ = poisoned(backend(), DType::kFloat32, {num_tokens(), kFeatures});
    compute(10, flops);
    EXPECT_EQ(bytes_of(backend(), out_), expected);
    EXPECT_GT(num_asked, 0);
  }
}

TEST_P(StopPointsTest, LittleWorkIsNotWaitedForOnAGpu) {
  if (!device().is_asynchronous()) GTEST_SKIP() << "operations return when they are done";
  make_tensors();
  int num_asked = 0;
  device().set_stop_question([&] {
    ++num_asked;
    return true;
  });
  EXPECT_NO_THROW(compute(20, 1e6));
  EXPECT_EQ(num_asked, 0);
}

FOR_EACH_BACKEND(StopPointsTest);

}  // namespace
}  // namespace tessera
