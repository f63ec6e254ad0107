// Where the host asks whether a GPU's work is still wanted.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>

#include "kernels/cuda/device/event.h"
#include "kernels/tensor/stopped.h"

namespace tessera {

// The host launches kernels far faster than the GPU runs them, and what has been launched cannot be
// taken back: the whole step of a long prompt, which may take seconds, is on its way within
// milliseconds. So while there is a question, the host lets the GPU catch up. Work is divided into
// stretches, and the host launches a stretch once the one before the last has been computed. The
// GPU always has a stretch to go on with, and at a yes not more than two are left to it. Only
// behind a long stretch it has none: a tenth of a millisecond without work is then little, and two
// stretches would be much.
class StopPoints {
 public:
  void set_question(StopQuestion should_stop);
  bool has_question() const { return should_stop_ != nullptr; }

  // Device::stop_point, behind the last operation on `stream`.
  void pass(double flops, cudaStream_t stream);

 private:
  // 3 ms on an H200 and 100 ms on the slowest GPUs: many times what launching it takes, so that the
  // GPU waits for nothing, and what people do not notice.
  static constexpr double kStretchFlops = 2e12;
  // 80 ms on an H200: a layer of 8,192 tokens of an 8B model behind 350,000.
  static constexpr double kLongStretchFlops = 5e13;

  StopQuestion should_stop_;
  double flops_ = 0.0;  // since the last stretch ended
  // The ends of the last two stretches in turn, and which of them comes next.
  std::array<Event, 2> ends_ = {make_event(), make_event()};
  size_t next_ = 0;
};

}  // namespace tessera
