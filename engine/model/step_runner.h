// What computes steps, as the rooms above see it: tokens in, tokens out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/drawn_token.h"
#include "engine/model/token_chunk.h"
#include "kernels/tensor/stopped.h"

namespace tessera {

// A step that the device has been given.
struct LaunchedTokens {
  int64_t count = 0;          // tokens that it draws: as many of each chunk as it asks for
  uint64_t download = 0;      // how the runner finds them
  bool has_logprobs = false;  // of each of them: some chunk asks for that
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  // Gives the device a step; it may return before the device has computed it. Chunks of one token
  // come first. `should_stop` is asked only within the call. Throws Stopped when it says yes: KV
  // rows of the step's tokens are then unspecified, and nothing else has changed.
  virtual LaunchedTokens launch(std::span<const TokenChunk> step,
                                const StopQuestion& should_stop) = 0;

  // Waits for a step and returns the tokens that it drew, in the order of its chunks. The step is
  // one of the last two launched, or the last one if it has log-probabilities.
  virtual std::vector<DrawnToken> collect(const LaunchedTokens& step) = 0;

 protected:
  StepRunner() = default;
};

}  // namespace tessera
