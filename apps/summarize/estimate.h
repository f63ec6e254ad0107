// What a plan will take, in words for a person who decides whether to wait.
#pragma once

#include <cstdint>

#include "apps/summarize/plan.h"
#include "engine/engine.h"

namespace tessera {

// Bytes of keys and values that the plan's calls hold at the same time, at most.
uint64_t kv_bytes_needed(const Engine& engine, const SummaryPlan& plan);

// From the sizes of model and plan and what devices of its kind usually reach, to within a factor
// of about three: nothing has been computed yet that could be measured.
double estimated_seconds(const Engine& engine, const SummaryPlan& plan);

}  // namespace tessera
