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
  // Asked before each step and, on a CPU, every few milliseconds of one, until it says yes. A step
  // of which all sequences are cancelled is given up: it changes none of them. No more than a
  // question: it neither calls the engine nor destroys a sequence.
  StopQuestion is_cancelled;
};

}  // namespace tessera
