#include "kernels/cuda/device/problems.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(DeviceProblems, SayWhatIsMissing) {
  EXPECT_EQ(missing_gpu_problem(true, 0, 13000), "no NVIDIA driver");
  EXPECT_EQ(missing_gpu_problem(true, 12040, 13000), "driver supports CUDA 12.4, need 13.0");
  EXPECT_EQ(missing_gpu_problem(true, 11080, 12080), "driver supports CUDA 11.8, need 12.0");
  EXPECT_EQ(missing_gpu_problem(false, 13000, 13000), "no visible GPU");
}

TEST(DeviceProblems, GiveTheValidRange) {
  EXPECT_EQ(gpu_index_problem(9, 1), "there is no GPU 9; valid is 0");
  EXPECT_EQ(gpu_index_problem(9, 4), "there is no GPU 9; valid are 0 to 3");
}

TEST(DeviceProblems, NameTheArchitecture) {
  EXPECT_EQ(gpu_architecture_problem("Tesla V100", 7, 0, "sm_80, sm_90"),
            "GPU 'Tesla V100' sm_70 not supported; built for sm_80, sm_90");
}

}  // namespace
}  // namespace tessera
