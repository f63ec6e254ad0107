#include "kernels/cuda/host_copy.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace tessera {
namespace {

constexpr size_t kMaxThreads = 8;
constexpr size_t kThreadBytes = size_t{2} << 20;  // worth starting a thread for

}  // namespace

void host_copy(std::byte* destination, const std::byte* source, size_t bytes) {
  const size_t num_cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t num_threads =
      std::clamp<size_t>(bytes / kThreadBytes, 1, std::min(kMaxThreads, num_cores));
  std::vector<std::jthread> helpers;
  size_t begin = 0;
  for (size_t remaining = num_threads; remaining > 1; --remaining) {
    const size_t part = (bytes - begin) / remaining;
    helpers.emplace_back([=] { std::memcpy(destination + begin, source + begin, part); });
    begin += part;
  }
  std::memcpy(destination + begin, source + begin, bytes - begin);
}

}  // namespace tessera
