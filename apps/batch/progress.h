// How far a batch has come, and how fast it goes now.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "apps/batch/counts.h"
#include "apps/batch/serving_state.h"
#include "apps/terminal/console.h"
#include "apps/terminal/progress_bar.h"
#include "apps/terminal/remaining_time.h"

namespace tessera {

class BatchProgress {
 public:
  // The clock starts. `console` must outlive this.
  explicit BatchProgress(const Console& console);

  // Whether show() would show anything now: it needs not be called for every step.
  bool is_due() const { return bar_.is_due(); }

  // The tokens are those of all answers, also of those that are still coming. `part_done` says how
  // much of the run is done where that is known better than by the number of requests.
  void show(const BatchCounts& counts, int64_t prompt_tokens, int64_t generated_tokens,
            std::optional<double> part_done, const std::optional<ServingState>& state);

  void clear() { bar_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Sample {
    Clock::time_point time;
    int64_t prompt_tokens = 0;
    int64_t generated_tokens = 0;
  };

  // Keeps `now` and the samples of the last seconds.
  void add(const Sample& now);
  std::string eta(const BatchCounts& counts, std::optional<double> part_done) const;

  ProgressBar bar_;
  RemainingTime time_;
  std::deque<Sample> samples_;  // oldest first, one at least
};

}  // namespace tessera
