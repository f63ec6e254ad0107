// Threads that read ahead of a consumer.
//
// The work is cut into numbered parts. Threads fetch them in order into a ring of slots, several at
// a time; the consumer takes them in the same order, however the threads overtake each other, and
// gives each slot back when it is done with it. So memory stays bounded, a slow consumer makes the
// threads wait and a slow disk the consumer.
//
//   ReadAhead ahead(num_parts, {.num_slots = 16, .num_threads = 8},
//                   [&](size_t part, size_t slot) { read part into the memory of slot });
//   for (size_t part = 0; part < num_parts; ++part) {
//     const size_t slot = ahead.take();
//     ... use the memory of slot ...
//     ahead.release();
//   }
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera {

struct ReadAheadSize {
  size_t num_slots = 1;
  size_t num_threads = 1;
};

class ReadAhead {
 public:
  // Fills the memory of `slot`, which is part % num_slots. Called by several threads at once.
  using Fetch = std::function<void(size_t part, size_t slot)>;

  // Starts the threads, no more than there are parts or slots. Throws Error when the system gives
  // none.
  ReadAhead(size_t num_parts, ReadAheadSize size, Fetch fetch);
  // Waits for the parts that are being fetched; the rest is left.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Waits for the next part and returns its slot. Throws what fetching this part threw: if several
  // parts fail, the first of them in order counts, whichever failed first in time.
  size_t take();

  // Releases the oldest part that was taken and not yet released: its slot may be filled again.
  void release();

 private:
  struct Slot {
    bool is_full = false;
    std::exception_ptr failure;
  };

  void work();

  const size_t num_parts_;
  const Fetch fetch_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable slot_released_;
  std::condition_variable part_fetched_;
  std::vector<Slot> slots_;
  size_t num_begun_ = 0;  // parts that a thread fetches or has fetched
  size_t num_taken_ = 0;
  size_t num_released_ = 0;
  bool is_stopping_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace tessera
