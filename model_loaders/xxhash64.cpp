#include "model_loaders/xxhash64.h"

#include <bit>
#include <cstring>

namespace tessera {
namespace {

constexpr uint64_t kPrime1 = 0x9e3779b185ebca87;
constexpr uint64_t kPrime2 = 0xc2b2ae3d27d4eb4f;
constexpr uint64_t kPrime3 = 0x165667b19e3779f9;
constexpr uint64_t kPrime4 = 0x85ebca77c2b2ae63;
constexpr uint64_t kPrime5 = 0x27d4eb2f165667c5;
constexpr size_t kStripeBytes = 32;

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

template <typename Word>
uint64_t word_at(const unsigned char* data) {
  Word word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

uint64_t round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

uint64_t merged(uint64_t hash, uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

// Four lanes, each of every fourth word. Moves `data` behind the last whole stripe.
uint64_t hash_stripes(const unsigned char*& data, size_t num_stripes) {
  uint64_t lane1 = kPrime1 + kPrime2, lane2 = kPrime2, lane3 = 0, lane4 = 0 - kPrime1;
  for (; num_stripes > 0; --num_stripes, data += kStripeBytes) {
    lane1 = round(lane1, word_at<uint64_t>(data));
    lane2 = round(lane2, word_at<uint64_t>(data + 8));
    lane3 = round(lane3, word_at<uint64_t>(data + 16));
    lane4 = round(lane4, word_at<uint64_t>(data + 24));
  }
  const uint64_t hash =
      std::rotl(lane1, 1) + std::rotl(lane2, 7) + std::rotl(lane3, 12) + std::rotl(lane4, 18);
  return merged(merged(merged(merged(hash, lane1), lane2), lane3), lane4);
}

uint64_t avalanche(uint64_t hash) {
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace

uint64_t xxhash64(const void* data, size_t size_bytes) {
  const auto* next = static_cast<const unsigned char*>(data);
  const unsigned char* const end = next + size_bytes;
  const size_t num_stripes = size_bytes / kStripeBytes;
  uint64_t hash = (num_stripes > 0 ? hash_stripes(next, num_stripes) : kPrime5) + size_bytes;
  for (; end - next >= 8; next += 8) {
    hash = std::rotl(hash ^ round(0, word_at<uint64_t>(next)), 27) * kPrime1 + kPrime4;
  }
  if (end - next >= 4) {
    hash = std::rotl(hash ^ word_at<uint32_t>(next) * kPrime1, 23) * kPrime2 + kPrime3;
    next += 4;
  }
  for (; next < end; ++next) hash = std::rotl(hash ^ *next * kPrime5, 11) * kPrime1;
  return avalanche(hash);
}

}  // namespace tessera
