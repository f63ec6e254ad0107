// The threads that share the loops of the CPU backend.
//
// A loop is cut into chunks, of which every thread has an equal share: the same items whenever the
// loop is run again, so that a core finds in its cache what it has read before, and a counter that
// no other thread writes while all go at the same speed. Who has done its own takes from the
// others, the calling thread too. So the caller never waits for a worker that is asleep or that
// another process keeps from running, only for chunks already begun: a busy machine makes loops
// slower, but does not stop them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/tensor/stopped.h"

namespace tessera {

// About what a thread needs. Estimates of a loop's cost are sums of these, and a factor of two
// matters little.
inline constexpr double kNanosecondsPerByte = 0.04;         // read or written in order
inline constexpr double kNanosecondsPerMultiplyAdd = 0.02;  // in float32 vectors

class ThreadPool {
 public:
  // The thread that calls for_each, and num_threads - 1 workers. Throws Error when the system does
  // not give that many.
  explicit ThreadPool(int num_threads);
  // Joins the workers. No loop may be running.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Loops ask from now on, on the calling thread: the next one at once, then every ten milliseconds
  // or after their longest item. Told to stop, a loop begins no more items and throws Stopped; some
  // have then been done.
  void set_stop_question(StopQuestion should_stop);

  // body(i) or body(i, thread) for every i in [0, count), each once, in any order and on any
  // thread, `thread` in [0, num_threads): results must not depend on either. Returns when all are
  // done, or throws one of the exceptions that bodies or the stop question threw; the rest of the
  // loop is then left. `item_nanoseconds` is about what one body takes; a loop too short to repay
  // waking a worker runs on the calling thread alone. Called by one thread at a time, and not by a
  // body.
  template <typename Body>
  void for_each(int64_t count, double item_nanoseconds, const Body& body) {
    const auto run_items = [&body](int64_t begin, int64_t end, [[maybe_unused]] int thread) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_invocable_v<const Body&, int64_t, int>) {
          body(i, thread);
        } else {
          body(i);
        }
      }
    };
    const int64_t chunk_items = items_of_chunk(count, item_nanoseconds);
    if (chunk_items >= count) {
      throw_if_stopped();
      return run_items(0, count, 0);
    }
    share(count, chunk_items, run_items);
  }

 private:
  using RunItems = std::function<void(int64_t begin, int64_t end, int thread)>;
  using Clock = std::chrono::steady_clock;

  // Chunks that one thread begins with: those before `end` that nobody has claimed yet.
  struct alignas(64) Share {
    std::atomic<uint32_t> unclaimed = 0;
    uint32_t end = 0;
  };

  // `count` or more when the calling thread should do all.
  int64_t items_of_chunk(int64_t count, double item_nanoseconds) const;
  void share(int64_t count, int64_t chunk_items, const RunItems& run_items);
  void work(int thread);
  void run_chunks(int thread);
  bool claim(Share& share, uint32_t& chunk);
  void run_chunk(uint32_t chunk, int thread);
  // Asks the stop question when its time has come. On the calling thread only.
  void throw_if_stopped();
  void stop();

  const int num_threads_;
  std::vector<std::thread> workers_;
  StopQuestion should_stop_;
  Clock::time_point next_question_;

  // The loop that runs. Who has claimed a chunk and not yet counted it as finished may read it; no
  // one else.
  const RunItems* run_items_ = nullptr;
  int64_t count_ = 0;
  int64_t chunk_items_ = 0;
  std::exception_ptr failure_;  // written by the thread that sets has_failed_
  std::atomic<bool> has_failed_ = false;
  std::atomic<bool> is_ending_ = false;
  std::vector<Share> shares_;  // one per thread

  alignas(64) std::atomic<uint32_t> num_loops_ = 0;   // begun so far; workers wait for the next
  alignas(64) std::atomic<uint32_t> unfinished_ = 0;  // chunks
};

}  // namespace tessera
