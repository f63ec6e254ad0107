#include "engine/text/sha256.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera {
namespace {

constexpr size_t kBlockBytes = 64;

// Fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(std::string_view block, size_t word) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(block[4 * word + i]);
  }
  return value;
}

}  // namespace

void Sha256::compress(std::string_view block) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t) w[t] = big_endian(block, t);
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t sigma0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t sigma1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + sigma0 + w[t - 7] + sigma1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRoundConstants[t] + w[t];
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> working = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state_.size(); ++i) state_[i] += working[i];
}

void Sha256::add(std::string_view bytes) {
  num_bytes_ += bytes.size();
  if (!begun_block_.empty()) {
    const size_t taken = std::min(kBlockBytes - begun_block_.size(), bytes.size());
    begun_block_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (begun_block_.size() < kBlockBytes) return;
    compress(begun_block_);
  }
  for (; bytes.size() >= kBlockBytes; bytes.remove_prefix(kBlockBytes)) {
    compress(bytes.substr(0, kBlockBytes));
  }
  begun_block_ = bytes;
}

std::string Sha256::digits() {
  // A bit of 1, bits of 0, and the number of bits in the last 8 bytes of a block.
  std::string end = std::move(begun_block_);
  end += '\x80';
  end.resize(end.size() + 8 <= kBlockBytes ? kBlockBytes - 8 : 2 * kBlockBytes - 8);
  for (int shift = 56; shift >= 0; shift -= 8) {
    end += static_cast<char>(8 * num_bytes_ >> shift);
  }
  for (size_t begin = 0; begin < end.size(); begin += kBlockBytes) {
    compress(std::string_view(end).substr(begin, kBlockBytes));
  }
  std::string digits;
  for (const uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[word >> shift & 15];
  }
  return digits;
}

std::string sha256(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.digits();
}

}  // namespace tessera
