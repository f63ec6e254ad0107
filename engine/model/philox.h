// Philox 4x32-10, the counter-based random generator of Salmon et al., "Parallel Random Numbers: As
// Easy as 1, 2, 3" (SC 2011): random bits are a pure function of key and counter, so that a token's
// draw depends on nothing but the seed and the token's index.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// The 64 random bits of draw `index` under `seed`.
constexpr uint64_t random_bits(uint64_t seed, uint64_t index) {
  const auto low = [](uint64_t value) { return static_cast<uint32_t>(value); };
  const auto high = [](uint64_t value) { return static_cast<uint32_t>(value >> 32); };
  const auto block = philox({low(index), high(index), 0, 0}, {low(seed), high(seed)});
  return uint64_t{block[1]} << 32 | block[0];
}

}  // namespace tessera
