// Division by a number known at launch, as one multiplication. Plain arithmetic.
#pragma once

#include <cstdint>

namespace tessera {

// floor(n / divisor), exact for n * divisor < 2^32 and divisor > 1: with m = floor(2^32 / d) + 1,
// n * m / 2^32 exceeds n / d by less than 1 / d.
class FastDivisor {
 public:
  constexpr explicit FastDivisor(uint32_t divisor)
      : divisor_(divisor), multiplier_(static_cast<uint32_t>((uint64_t{1} << 32) / divisor) + 1) {}

  constexpr uint32_t divide(uint32_t n) const {
    return static_cast<uint32_t>(uint64_t{n} * multiplier_ >> 32);
  }
  constexpr uint32_t divisor() const { return divisor_; }

 private:
  uint32_t divisor_;
  uint32_t multiplier_;
};

}  // namespace tessera
