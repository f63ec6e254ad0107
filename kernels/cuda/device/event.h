// The owner of a CUDA event: a point in a stream that can be waited for.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

#include "kernels/cuda/device/cuda_check.h"

namespace tessera {

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};

using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

inline Event make_event_of(unsigned int flags) {
  cudaEvent_t event = nullptr;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, flags));
  return Event(event);
}

inline Event make_event() { return make_event_of(cudaEventDisableTiming); }
// Also knows when it was reached, for cudaEventElapsedTime.
inline Event make_timing_event() { return make_event_of(cudaEventDefault); }

}  // namespace tessera
