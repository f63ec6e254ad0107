#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "kernels/tensor/check.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// Handing a loop to a worker that spins and hearing that it is done take half a microsecond.
constexpr double kMinSharedNanoseconds = 5e3;
constexpr double kMinChunkNanoseconds = 1e3;
// More even out threads of unequal speed; fewer keep the counting cheap.
constexpr int64_t kChunksPerThread = 32;
// A stop is heard between chunks.
constexpr double kMaxChunkNanoseconds = 2e6;

// Often enough that a person sees no delay, rarely enough that asking costs nothing.
constexpr std::chrono::milliseconds kQuestionInterval{10};

// The loops of a step follow each other faster than the system wakes threads.
constexpr std::chrono::microseconds kSpinTime{50};

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns when `value` is not `old` any more: at once, after spinning or after sleeping.
void wait_while(const std::atomic<uint32_t>& value, uint32_t old) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 16; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads) {
  CHECK(num_threads >= 1, "a thread pool cannot have ", num_threads, " threads");
  shares_ = std::vector<Share>(static_cast<size_t>(num_threads));
  try {
    for (int thread = 1; thread < num_threads; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  } catch (const std::exception& error) {  // no more threads, or no memory for one
    stop();
    throw Error(concat("cannot start ", num_threads, " threads: ", error.what()));
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  is_ending_.store(true, std::memory_order_relaxed);
  num_loops_.fetch_add(1, std::memory_order_release);
  num_loops_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

int64_t ThreadPool::items_of_chunk(int64_t count, double item_nanoseconds) const {
  const double total = static_cast<double>(count) * item_nanoseconds;
  if (count <= 1 || total < kMinSharedNanoseconds) return count;
  const auto items_in = [=](double nanoseconds) {
    return static_cast<int64_t>(
        std::clamp(nanoseconds / item_nanoseconds, 1.0, static_cast<double>(count)));
  };
  return std::clamp(ceil_divide(count, kChunksPerThread * num_threads_),
                    items_in(kMinChunkNanoseconds), items_in(kMaxChunkNanoseconds));
}

void ThreadPool::share(int64_t count, int64_t chunk_items, const RunItems& run_items) {
  run_items_ = &run_items;
  count_ = count;
  chunk_items_ = chunk_items;
  const auto num_chunks = static_cast<uint32_t>(ceil_divide(count, chunk_items));
  unfinished_.store(num_chunks, std::memory_order_relaxed);
  uint32_t begin = 0;
  for (size_t i = 0; i < shares_.size(); ++i) {
    shares_[i].end = static_cast<uint32_t>(num_chunks * (i + 1) / shares_.size());
    shares_[i].unclaimed.store(shares_[i].end - begin, std::memory_order_release);
    begin = shares_[i].end;
  }
  num_loops_.fetch_add(1, std::memory_order_release);
  const uint32_t helpers = num_chunks - 1;
  if (helpers >= workers_.size()) {
    num_loops_.notify_all();
  } else {
    for (uint32_t i = 0; i < helpers; ++i) num_loops_.notify_one();
  }

  run_chunks(0);
  while (const uint32_t unfinished = unfinished_.load(std::memory_order_acquire)) {
    wait_while(unfinished_, unfinished);
  }
  if (has_failed_.exchange(false)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  while (true) {
    wait_while(num_loops_, seen);
    seen = num_loops_.load(std::memory_order_acquire);
    if (is_ending_.load(std::memory_order_relaxed)) return;
    run_chunks(thread);
  }
}

// The chunks are counted as finished together, so that threads seldom meet at that counter. Until
// then no other loop begins, so all of them are of one loop.
void ThreadPool::run_chunks(int thread) {
  uint32_t finished = 0;
  uint32_t chunk = 0;
  for (size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[(static_cast<size_t>(thread) + i) % shares_.size()];
    for (; claim(share, chunk); ++finished) run_chunk(chunk, thread);
  }
  if (finished == 0) return;
  const bool is_last = unfinished_.fetch_sub(finished, std::memory_order_acq_rel) == finished;
  if (is_last && thread != 0) unfinished_.notify_one();
}

// A claim needs no more than the counter: whoever takes it from n to n - 1 has chunk end - n of the
// loop that runs now, whichever loop it was when n was read.
bool ThreadPool::claim(Share& share, uint32_t& chunk) {
  uint32_t unclaimed = share.unclaimed.load(std::memory_order_relaxed);
  while (unclaimed != 0) {
    if (share.unclaimed.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
      chunk = share.end - unclaimed;
      return true;
    }
  }
  return false;
}

void ThreadPool::set_stop_question(StopQuestion should_stop) {
  should_stop_ = std::move(should_stop);
  next_question_ = {};
}

void ThreadPool::throw_if_stopped() {
  if (!should_stop_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_question_) return;
  next_question_ = now + kQuestionInterval;
  if (should_stop_()) throw Stopped{};
}

// After a failure, the chunks that are left are claimed and counted, but not run.
void ThreadPool::run_chunk(uint32_t chunk, int thread) {
  const int64_t begin = chunk * chunk_items_;
  if (has_failed_.load(std::memory_order_relaxed)) return;
  try {
    if (thread == 0) throw_if_stopped();
    (*run_items_)(begin, std::min(begin + chunk_items_, count_), thread);
  } catch (...) {
    if (!has_failed_.exchange(true)) failure_ = std::current_exception();
  }
}

}  // namespace tessera
