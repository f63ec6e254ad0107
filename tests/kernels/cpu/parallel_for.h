// A loop over the machine's threads, for references that would take too long on one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tessera {

// body(i) for every i in [0, count), in any order and from any thread. `item_operations` is about
// how many additions one body makes: loops too short to repay a thread run on the calling one.
template <typename Body>
void parallel_for(int64_t count, int64_t item_operations, const Body& body) {
  constexpr int64_t kThreadOperations = 500'000;
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) body(i);
  };
  const int64_t num_threads = std::min<int64_t>(std::thread::hardware_concurrency(),
                                                count * item_operations / kThreadOperations);
  std::vector<std::jthread> helpers;
  for (int64_t i = 1; i < num_threads; ++i) helpers.emplace_back(work);
  work();
}

}  // namespace tessera
