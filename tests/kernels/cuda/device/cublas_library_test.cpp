#ifdef TESSERA_CUDA

#include "kernels/cuda/device/cublas_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::HasSubstr;

// Needs the file and no GPU: every function was found when this returns.
TEST(CublasLibraryTest, LoadsWithoutAGpu) {
  EXPECT_THAT(cublas().get_status_string(CUBLAS_STATUS_NOT_SUPPORTED), HasSubstr("not supported"));
  EXPECT_EQ(&cublas(), &cublas());
}

}  // namespace
}  // namespace tessera

#endif
