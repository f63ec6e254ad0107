// Which device a tensor lies on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

enum class DeviceType : uint8_t { kCpu, kCuda };

constexpr std::string_view to_string(DeviceType device) {
  return device == DeviceType::kCpu ? "cpu" : "cuda";
}

// One device of this machine. A type alone means the first of its kind.
struct DeviceId {
  DeviceType type = DeviceType::kCpu;
  int8_t index = 0;  // among the devices of this type

  constexpr DeviceId() = default;
  constexpr DeviceId(DeviceType device, int place = 0)  // NOLINT: the first of its kind
      : type(device), index(static_cast<int8_t>(place)) {}

  constexpr bool operator==(const DeviceId&) const = default;
  // Would be false for the second GPU: ask for the type.
  constexpr bool operator==(DeviceType) const = delete;
};

// "cpu", "cuda", "cuda:1".
inline std::string to_string(DeviceId device) {
  const std::string_view type = to_string(device.type);
  return device.index == 0 ? std::string(type) : concat(type, ":", device.index + 0);
}

}  // namespace tessera
