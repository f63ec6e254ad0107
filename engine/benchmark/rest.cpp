#include "engine/benchmark/rest.h"

#include <chrono>
#include <thread>

namespace tessera {

void rest(const Device& device) {
  if (device.type() == DeviceType::kCuda) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

}  // namespace tessera
