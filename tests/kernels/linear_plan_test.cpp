#include "kernels/cuda/linear_plan.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(LinearPlanTest, FewTokensAreReadBound) {
  EXPECT_EQ(choose_linear_kernel(1), LinearKernel::kGemv);
  EXPECT_EQ(choose_linear_kernel(kGemvMaxTokens), LinearKernel::kGemv);
  EXPECT_EQ(choose_linear_kernel(kGemvMaxTokens + 1), LinearKernel::kCublas);
  EXPECT_EQ(choose_linear_kernel(8192), LinearKernel::kCublas);
}

}  // namespace
}  // namespace tessera
