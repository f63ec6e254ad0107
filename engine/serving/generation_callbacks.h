// What a caller hears of a generation while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "kernels/tensor/stopped.h"

namespace tessera {

// They may submit, cancel and destroy sequences, also their own, but not step the engine.
struct GenerationCallbacks {
  std::function<void(std::string_view text)> on_text;           // complete UTF-8 characters
  std::function<void(int64_t done, int64_t total)> on_prefill;  // prompt tokens, after each step
  // Asked before each step and within it until it says yes: on a CPU every few milliseconds, on a
  // GPU between layers, where no sequence of the step decodes. A step of which all sequences are
  // cancelled is given up: it changes none of them. No more than a question: it neither calls the
  // engine nor destroys a sequence.
  StopQuestion is_cancelled;
};

}  // namespace tessera
