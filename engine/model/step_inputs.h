// The device buffer behind every ForwardBatch.
#pragma once

#include <cstdint>
#include <span>

#include "engine/model/forward_batch.h"
#include "engine/model/step_limits.h"
#include "engine/model/token_chunk.h"
#include "kernels/device.h"
#include "kernels/tensor/buffer.h"

namespace tessera {

class StepInputs {
 public:
  StepInputs(Arena& arena, const StepLimits& limits, int64_t page_size);

  // Describes the step and copies it to the device. The sampled rows are the last tokens of the
  // chunks that ask for a token, in order. `drawn` are the tokens of the step before, which are
  // this step's where the host does not know them.
  //   drawn int32 [step.size()]
  ForwardBatch prepare(std::span<const TokenChunk> step, const Tensor& drawn, Device& device);

  // Rows [begin, end) of the step as sampled rows, for logits that no chunk asks for.
  Tensor rows(int64_t begin, int64_t end, Device& device);

 private:
  Tensor buffer_;  // int32, for all tensors of a ForwardBatch at their largest
  int64_t page_size_;
  int64_t max_pages_;  // of a sequence
};

}  // namespace tessera
