// How long work will still take, judged by how long it has taken so far.
#pragma once

#include <chrono>
#include <string>

namespace tessera {

class RemainingTime {
 public:
  // "12 s" when this part of the work is done, "?" where nothing is known yet.
  std::string text(double fraction) const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tessera
