// For how long a device asks whether to stop.
#pragma once

#include <utility>

#include "kernels/device.h"

namespace tessera {

// While it lives, the device asks `should_stop`.
class StopScope {
 public:
  StopScope(Device& device, StopQuestion should_stop) : device_(device) {
    device_.set_stop_question(std::move(should_stop));
  }
  ~StopScope() { device_.set_stop_question({}); }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  Device& device_;
};

}  // namespace tessera
