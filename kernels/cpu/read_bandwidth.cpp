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
struct SumWords {
  template <int kLanes>
  VECTOR_INLINE static void run(const std::byte* chunk, uint32_t& total) {
    using Bits = typename VectorOf<kLanes>::Bits;
    constexpr int kStreams = 4;  // sums that do not wait for each other
    constexpr auto kStep = static_cast<int64_t>(sizeof(Bits));
    Bits sums[kStreams] = {};
    for (int64_t i = 0; i < kChunkBytes; i += kStreams * kStep) {
      for (int stream = 0; stream < kStreams; ++stream) {
        Bits words;
        std::memcpy(&words, chunk + i + stream * kStep, sizeof(words));
        sums[stream] += words;
      }
    }
    const Bits sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    total = 0;
    for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
  }
};

}  // namespace

double measure_host_read_bandwidth(ThreadPool& pool) {
  const Buffer buffer = allocate_host_memory(kBufferBytes, "the bandwidth measurement");
  auto* const data = static_cast<std::byte*>(buffer.data());
  // Untouched pages would all be one page of zeros. A new page is supposed to cost as much as
  // reading ten.
  pool.for_each(kBufferBytes / kChunkBytes, 10 * kChunkBytes * kNanosecondsPerByte,
                [&](int64_t chunk) { std::memset(data + chunk * kChunkBytes, 1, kChunkBytes); });

  std::atomic<uint32_t> total = 0;
  std::array<double, kPasses> rates{};
  for (double& rate : rates) {
    const auto start = std::chrono::steady_clock::now();
    pool.for_each(kBufferBytes / kChunkBytes, kChunkBytes * kNanosecondsPerByte,
                  [&](int64_t chunk) {
                    uint32_t sum = 0;
                    run_vectorized<SumWords>(data + chunk * kChunkBytes, sum);
                    total += sum;
                  });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    rate = static_cast<double>(kBufferBytes) / elapsed.count();
  }
  std::ranges::sort(rates);
  return rates[kPasses / 2];
}

}  // namespace tessera
