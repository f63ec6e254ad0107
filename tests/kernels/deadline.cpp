#include "tests/kernels/deadline.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace tessera {
namespace {

std::string running_test() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return "outside of any test";
  return std::string(test->test_suite_name()) + "." + test->name();
}

}  // namespace

Deadline::Deadline(const std::string& what, std::chrono::milliseconds limit)
    : watcher_([this, limit, message = running_test() + ": " + what] {
        std::unique_lock lock(mutex_);
        if (ended_.wait_for(lock, limit, [this] { return has_ended_; })) return;
        std::cout << std::flush;
        std::cerr << "[   HANG   ] " << message << ": not done after " << limit.count() << " ms"
                  << std::endl;
        std::_Exit(kExitCode);
      }) {}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_one();
  watcher_.join();
}

}  // namespace tessera
