#include "kernels/read_ahead.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "kernels/tensor/check.h"

namespace tessera {

ReadAhead::ReadAhead(size_t num_parts, ReadAheadSize size, Fetch fetch)
    : num_parts_(num_parts), fetch_(std::move(fetch)), slots_(size.num_slots) {
  CHECK(size.num_slots >= 1 && size.num_threads >= 1, "reading ahead needs a slot and a thread, ",
        "got ", size.num_slots, " and ", size.num_threads);
  const size_t num_threads = std::min({size.num_threads, size.num_slots, num_parts});
  threads_.reserve(num_threads);
  try {
    while (threads_.size() < num_threads) threads_.emplace_back([this] { work(); });
  } catch (const std::exception& error) {  // no more threads, or no memory for one
    // Fewer threads do the same work, only slower.
    if (threads_.empty()) throw Error(concat("cannot start a thread to read: ", error.what()));
  }
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  slot_released_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

size_t ReadAhead::take() {
  std::unique_lock lock(mutex_);
  CHECK(num_taken_ < num_parts_, "all ", num_parts_, " parts have been taken");
  CHECK(num_taken_ - num_released_ < slots_.size(), "all ", slots_.size(), " slots are in use");
  const size_t index = num_taken_ % slots_.size();
  Slot& slot = slots_[index];
  part_fetched_.wait(lock, [&] { return slot.is_full; });
  if (slot.failure) std::rethrow_exception(slot.failure);
  ++num_taken_;
  return index;
}

void ReadAhead::release() {
  {
    const std::lock_guard lock(mutex_);
    CHECK(num_released_ < num_taken_, "no part is there to be released");
    slots_[num_released_ % slots_.size()].is_full = false;
    ++num_released_;
  }
  slot_released_.notify_one();
}

void ReadAhead::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    slot_released_.wait(lock, [this] {
      return is_stopping_ || num_begun_ == num_parts_ || num_begun_ < num_released_ + slots_.size();
    });
    if (is_stopping_ || num_begun_ == num_parts_) return;
    const size_t part = num_begun_++;
    const size_t index = part % slots_.size();
    std::exception_ptr failure;
    lock.unlock();
    try {
      fetch_(part, index);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    slots_[index] = {.is_full = true, .failure = failure};
    if (part == num_taken_) part_fetched_.notify_one();  // others the consumer does not wait for
    // Another thread may sleep because the last part was not begun yet.
    if (num_begun_ == num_parts_) slot_released_.notify_all();
  }
}

}  // namespace tessera
