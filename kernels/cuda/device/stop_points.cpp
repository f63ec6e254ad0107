#include "kernels/cuda/device/stop_points.h"

#include <chrono>
#include <thread>
#include <utility>

#include "kernels/cuda/device/cuda_check.h"

namespace tessera {
namespace {

// A fraction of a stretch, so that the next is launched long before the GPU needs it.
constexpr std::chrono::microseconds kQuestionInterval(100);

bool is_reached(const Event& event) {
  const cudaError_t code = cudaEventQuery(event.get());
  if (code == cudaErrorNotReady) {
    cudaGetLastError();  // or it would be taken for an error of the next kernel launch
    return false;
  }
  CUDA_CHECK(code);
  return true;
}

}  // namespace

void StopPoints::set_question(StopQuestion should_stop) {
  should_stop_ = std::move(should_stop);
  flops_ = 0.0;
}

void StopPoints::pass(double flops, cudaStream_t stream) {
  if (!should_stop_) return;
  flops_ += flops;
  if (flops_ < kStretchFlops) return;
  const Event& newest = ends_[next_];
  const Event& before = ends_[1 - next_];
  CUDA_CHECK(cudaEventRecord(newest.get(), stream));
  const Event& awaited = flops_ < kLongStretchFlops ? before : newest;
  flops_ = 0.0;
  next_ = 1 - next_;
  if (should_stop_()) throw Stopped{};
  // An event that was never recorded counts as reached.
  while (!is_reached(awaited)) {
    std::this_thread::sleep_for(kQuestionInterval);
    if (should_stop_()) throw Stopped{};
  }
}

}  // namespace tessera
