// Says which case hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tessera {

// While it lives, a wait that must end: a kernel that never finishes would stop the whole run
// without a word. After `limit` the process ends with kExitCode and a message that names the
// running test and `what`.
class Deadline {
 public:
  static constexpr int kExitCode = 3;

  explicit Deadline(const std::string& what,
                    std::chrono::milliseconds limit = std::chrono::seconds(60));
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread watcher_;
};

}  // namespace tessera
