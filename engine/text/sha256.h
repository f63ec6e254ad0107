// SHA-256 (FIPS 180-4), to recognise a text. Not for secrets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// The digest of a text that comes piece by piece.
class Sha256 {
 public:
  void add(std::string_view bytes);
  // Of all that was added, as 64 lower-case hexadecimal digits. Nothing can be added afterwards.
  std::string digits();

 private:
  void compress(std::string_view block);

  // Fractional parts of the square roots of the first 8 primes.
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint64_t num_bytes_ = 0;
  std::string begun_block_;  // less than a block
};

// The digest of `bytes`.
std::string sha256(std::string_view bytes);

}  // namespace tessera
