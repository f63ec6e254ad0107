// How long one thing after the other takes.
#pragma once

#include <chrono>

namespace tessera {

// Seconds since it was last asked, or made.
class LapClock {
 public:
  double lap() {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> elapsed = now - last_;
    last_ = now;
    return elapsed.count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace tessera
