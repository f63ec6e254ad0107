// Makes what is written to a file durable beside the work, so that no answer waits for the disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace tessera {

class SyncThread {
 public:
  // How long bytes that were written may wait until the disk is asked to keep them.
  static constexpr std::chrono::milliseconds kMaxDelay{50};

  // Of `descriptor`, which must stay open; its first `durable_bytes` are. Where no thread can be
  // started, note_written() does the work itself.
  SyncThread(int descriptor, uint64_t durable_bytes);
  // Does what is left to do.
  ~SyncThread();
  SyncThread(const SyncThread&) = delete;
  SyncThread& operator=(const SyncThread&) = delete;

  // Bytes up to `end_bytes` have been written.
  void note_written(uint64_t end_bytes);

  // Waits until all that was written is durable, or is known not to be.
  void wait();

  // How far the file is durable. 0 or what errno said when the disk refused the rest.
  uint64_t durable_bytes() const;
  int error() const;

 private:
  void run();
  // One sync of what was written so far; the lock is given up meanwhile.
  void sync(std::unique_lock<std::mutex>& lock);
  bool has_work() const { return error_ == 0 && durable_bytes_ < written_bytes_; }

  int descriptor_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t written_bytes_;
  uint64_t durable_bytes_;
  int error_ = 0;
  bool is_hurried_ = false;  // somebody waits
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera
