// Reproducible inputs: the same seed gives the same numbers.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace tessera {

class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : engine_(seed) {}

  std::vector<double> normal(int64_t count, double deviation = 1.0);

  // From [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }

  // From [low, high], both included.
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  std::vector<int32_t> integers(int64_t count, int64_t low, int64_t high) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (int32_t& value : values) value = static_cast<int32_t>(integer(low, high));
    return values;
  }

  // 0 ... count - 1 in random order.
  std::vector<int32_t> permutation(int64_t count) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    for (int64_t i = count - 1; i > 0; --i) {
      std::swap(values[static_cast<size_t>(i)], values[static_cast<size_t>(integer(0, i))]);
    }
    return values;
  }

  uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tessera
