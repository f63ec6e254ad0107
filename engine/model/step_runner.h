// What computes steps, as the rooms above see it: tokens in, tokens out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/token_chunk.h"
#include "kernels/tensor/stopped.h"

namespace tessera {

// A step that the device has been given.
struct LaunchedTokens {
  int64_t count = 0;      // tokens that it draws: as many of each chunk as it asks for
  uint64_t download = 0;  // how the runner finds them
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

  // Waits for a step, one of the last two launched: the tokens that it drew, in the order of its
  // chunks; nothing for one whose logits were not finite.
  virtual std::vector<std::optional<TokenId>> collect(const LaunchedTokens& step) = 0;

 protected:
  StepRunner() = default;
};

}  // namespace tessera
