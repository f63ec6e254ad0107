#include "apps/batch/sync_thread.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tessera {

SyncThread::SyncThread(int descriptor, uint64_t durable_bytes)
    : descriptor_(descriptor), written_bytes_(durable_bytes), durable_bytes_(durable_bytes) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // the system has no threads left
  }
}

SyncThread::~SyncThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SyncThread::note_written(uint64_t end_bytes) {
  std::unique_lock lock(mutex_);
  const bool had_work = has_work();
  written_bytes_ = end_bytes;
  if (!thread_.joinable()) return sync(lock);
  if (!had_work) changed_.notify_all();
}

void SyncThread::wait() {
  std::unique_lock lock(mutex_);
  is_hurried_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !has_work(); });
  is_hurried_ = false;
}

uint64_t SyncThread::durable_bytes() const {
  const std::lock_guard lock(mutex_);
  return durable_bytes_;
}

int SyncThread::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void SyncThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || has_work(); });
    if (!has_work()) return;
    // What follows soon is made durable with it.
    changed_.wait_for(lock, kMaxDelay, [this] { return ends_ || is_hurried_; });
    sync(lock);
    changed_.notify_all();
  }
}

void SyncThread::sync(std::unique_lock<std::mutex>& lock) {
  const uint64_t end_bytes = written_bytes_;
  lock.unlock();
  // EINVAL: a file system that has nothing to make durable.
  const int problem = fdatasync(descriptor_) == 0 || errno == EINVAL ? 0 : errno;
  lock.lock();
  error_ = problem;
  if (problem == 0) durable_bytes_ = end_bytes;
}

}  // namespace tessera
