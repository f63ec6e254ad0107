// Answering the requests of a batch, as many at a time as the engine takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "apps/batch/counts.h"
#include "apps/batch/in_flight.h"
#include "apps/batch/input.h"
#include "apps/batch/output.h"
#include "apps/batch/prepare.h"
#include "apps/batch/progress.h"
#include "apps/batch/token_forecast.h"
#include "apps/terminal/console.h"
#include "engine/engine.h"

namespace tessera {

// A batch as a run finds it.
struct BatchFiles {
  BatchInput& input;
  BatchOutput& output;
};

class BatchRun {
 public:
  // `engine` may be null when no item that is to do is a request. At the first Ctrl-C,
  // `on_interrupt` is told how many requests have begun. All must outlive the run.
  BatchRun(Engine* engine, const BatchFiles& files, BatchDefaults defaults,
           std::function<void(int64_t num_begun)> on_interrupt, const Console& console);

  // Appends a record for every item that the output has no answer for, as each is finished. After
  // Ctrl-C no request begins, and those that have begun are finished; after SIGTERM none is. The
  // signal stays pending. Throws Error when the engine or the output fails.
  BatchCounts run();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_to_do(const BatchItem& item) const;
  int64_t limit_of(const BatchItem& item) const;
  // Whether another request may be given to the engine.
  bool has_room() const;
  // Reads, renders and tokenises requests for a part of a step's time: the device computes
  // meanwhile, but must not wait for the next step.
  void admit();
  void begin(const BatchItem& item);
  void append_error(const BatchItem& item, const BatchProblem& problem);
  void append_answer(const FinishedRequest& finished);
  void add_statistics(const ServingStatistics& statistics);
  void step();
  bool may_go_on(bool has_begun);
  void tell_interrupt();
  void show_progress();

  Engine* engine_;
  BatchFiles files_;
  BatchDefaults defaults_;
  std::function<void(int64_t)> on_interrupt_;
  bool has_told_interrupt_ = false;
  BatchProgress progress_;
  BatchCounts counts_;
  InFlight::Tokens ended_tokens_;  // of requests that have ended, answered or not
  TokenForecast forecast_;
  std::vector<uint32_t> order_;  // places of the items, as they are begun
  size_t next_ = 0;              // in order_, the first that nobody has looked at
  std::optional<InFlight> in_flight_;
  std::optional<Clock::time_point> first_step_;
  Clock::duration prepare_time_;  // how long requests are prepared before the next step
};

}  // namespace tessera
