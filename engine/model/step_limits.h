// The sizes that a caller asks for, and the limits of every step that are made of them.
#pragma once

#include <cstdint>

namespace tessera {

// A GPU computes more tokens at a time faster (8B and 32k on an H200: 0.8 % from 2,048 to 4,096)
// and holds 0.2 GiB more for them. On a CPU a step of 2,048 takes seconds, between which progress
// is told; 512 tell it four times as often and take 5 % longer.
inline constexpr int64_t kCudaPrefillChunk = 4096;
inline constexpr int64_t kCpuPrefillChunk = 2048;

struct WantedSizes {
  int64_t context_size = 0;   // tokens of a sequence; 0: as many as the model has and memory allows
  int64_t max_sequences = 1;  // running at the same time
  int64_t page_size = 64;     // tokens per KV page
  int64_t prefill_chunk = 0;  // prompt tokens of a step; 0: the device's number above
};

struct StepLimits {
  int64_t max_tokens = 0;     // query tokens of a step
  int64_t max_sequences = 0;  // sequences of a step, and so running at the same time
  int64_t context_size = 0;   // tokens of a sequence, prompt and answer together
};

}  // namespace tessera
