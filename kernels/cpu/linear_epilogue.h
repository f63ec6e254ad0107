// What becomes of the sums of a matrix product on the CPU.
#pragma once

namespace tessera {

// out = sum + bias, or out += multiplier * (sum + bias).
struct LinearEpilogue {
  const float* bias = nullptr;  // [out_features]; nullptr: none
  bool accumulate = false;
  float multiplier = 1.0f;  // 1 unless `accumulate`
};

}  // namespace tessera
