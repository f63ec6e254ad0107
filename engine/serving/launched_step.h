// A step from its launch until its tokens have arrived.
#pragma once

#include <span>
#include <vector>

#include "engine/model/step_runner.h"
#include "engine/serving/request.h"

namespace tessera {

// A step that the device has been given and whose tokens the host has not taken.
struct LaunchedStep {
  std::vector<ScheduledSequence> batch;
  LaunchedTokens tokens;

  // Whether any sequence still waits for what it computes.
  bool is_wanted() const;
  // Drops what it computes for the sequence.
  void forget(const Sequence& sequence);
};

// The step as a runner takes it. Refers to the sequences and generations of the batch.
std::vector<TokenChunk> chunks_of(std::span<const ScheduledSequence> batch);

}  // namespace tessera
