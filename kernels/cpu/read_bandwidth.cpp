#include "kernels/cpu/read_bandwidth.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>

#include "kernels/cpu/host_memory.h"
#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

constexpr int64_t kBufferBytes = int64_t{512} << 20;
constexpr int64_t kChunkBytes = int64_t{1} << 20;
constexpr int kPasses = 7;

// The sum of a chunk's words, so that every one must be read.
VECTOR_FUNCTION uint32_t sum_words(const std::byte* chunk) {
  constexpr int kStreams = 4;  // sums that do not wait for each other
  constexpr auto kStep = static_cast<int64_t>(sizeof(LaneBits));
  LaneBits sums[kStreams] = {};
  for (int64_t i = 0; i < kChunkBytes; i += kStreams * kStep) {
    for (int stream = 0; stream < kStreams; ++stream) {
      LaneBits words;
      std::memcpy(&words, chunk + i + stream * kStep, sizeof(words));
      sums[stream] += words;
    }
  }
  const LaneBits sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  uint32_t total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
  return total;
}

}  // namespace

double measure_host_read_bandwidth(ThreadPool& pool) {
  const Buffer buffer = allocate_host_memory(kBufferBytes, "the bandwidth measurement");
  auto* const data = static_cast<std::byte*>(buffer.data());
  std::memset(data, 1, kBufferBytes);  // untouched pages would all be one page of zeros

  std::atomic<uint32_t> total = 0;
  std::array<double, kPasses> rates{};
  for (double& rate : rates) {
    const auto start = std::chrono::steady_clock::now();
    pool.for_each(kBufferBytes / kChunkBytes, kChunkBytes * kNanosecondsPerByte,
                  [&](int64_t chunk) { total += sum_words(data + chunk * kChunkBytes); });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    rate = static_cast<double>(kBufferBytes) / elapsed.count();
  }
  std::ranges::sort(rates);
  return rates[kPasses / 2];
}

}  // namespace tessera
