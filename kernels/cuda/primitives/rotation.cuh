// The angles of rotary positions (Su et al. 2021).
#pragma once

#include <cstdint>

namespace tessera {

// amplitude * (cos, sin) of position * inverse_frequency. A float32 product would be off by 0.03
// radians at position 1,000,000; the product and its reduction to one turn are exact enough in
// float64.
__device__ inline float2 rotation_of(int32_t position, float inverse_frequency, float amplitude) {
  constexpr double kTurnsPerRadian = 0.15915494309189535;
  const double turns = position * static_cast<double>(inverse_frequency) * kTurnsPerRadian;
  float2 rotation;
  sincospif(2.0f * static_cast<float>(turns - rint(turns)), &rotation.y, &rotation.x);
  return {amplitude * rotation.x, amplitude * rotation.y};
}

}  // namespace tessera
