// What tests and timings of single kernels have: a stream of their own, and what the GPU is.
#pragma once

#include <memory>
#include <type_traits>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "tests/kernels/for_each_backend.h"

namespace tessera {

// Skips what is not CUDA.
class CudaStreamTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    if (device().type() != DeviceType::kCuda) GTEST_SKIP() << "CUDA only";
    cudaStream_t stream = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    stream_.reset(stream);
    gpu_ = gpu_traits(0);
  }

  cudaStream_t stream() const { return stream_.get(); }
  void finish() const { CUDA_CHECK(cudaStreamSynchronize(stream())); }
  const GpuTraits& gpu() const { return gpu_; }

 private:
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, decltype(&cudaStreamDestroy)> stream_{
      nullptr, cudaStreamDestroy};
  GpuTraits gpu_;
};

// For kernels that only Hopper runs.
class HopperStreamTest : public CudaStreamTest {
 protected:
  void SetUp() override {
    CudaStreamTest::SetUp();
    if (!IsSkipped() && !runs_hopper()) GTEST_SKIP() << "kernels for Hopper only";
  }
};

}  // namespace tessera
