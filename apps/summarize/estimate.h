// What a plan will take, in words for a person who decides whether to wait.
#pragma once

#include <cstdint>

#include "apps/summarize/plan.h"
#include "engine/benchmark/device_rates.h"
#include "engine/engine.h"

namespace tessera {

// Bytes of keys and values that the plan's calls hold at the same time, at most.
uint64_t kv_bytes_needed(const Engine& engine, const SummaryPlan& plan);

struct Forecast {
  double reading_seconds = 0.0;
  double answering_seconds = 0.0;  // at most: answers may end before they have all their tokens
};

// From the sizes of model and plan and what the device reaches. A CPU is measured, unless it is
// done soon; of a GPU what is usual is taken, to within a factor of about three. Throws Stopped
// after a signal.
Forecast make_forecast(const Engine& engine, const EngineOptions& options, const SummaryPlan& plan);

}  // namespace tessera
