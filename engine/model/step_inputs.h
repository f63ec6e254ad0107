// The device buffer behind every ForwardBatch.
#pragma once

#include <cstdint>
#include <span>

#include "engine/model/forward_batch.h"
#include "engine/model/step_limits.h"
#include "engine/model/token_chunk.h"
#include "kernels/operations.h"
#include "kernels/tensor/buffer.h"

namespace tessera {

class StepInputs {
 public:
  StepInputs(Arena& arena, const StepLimits& limits, int64_t page_size);

  // Describes the step and copies it to the device. The sampled rows are the last tokens of the
  // chunks that ask for a token, as many of each as it asks for, in order. `drawn` are the tokens
  // that the step before drew, of which this step takes those that the host does not know.
  //   drawn int32 [any]
  ForwardBatch prepare(std::span<const TokenChunk> step, const Tensor& drawn,
                       Operations& operations);

  // Rows [begin, end) of the step as sampled rows, for logits that no chunk asks for.
  Tensor rows(int64_t begin, int64_t end, Device& device);

  // A word on the device, whatever it holds: when a download of it has arrived, all steps before
  // are over.
  Tensor any_word() const { return buffer_.slice(0, 1); }

 private:
  Tensor buffer_;  // int32, for all tensors of a ForwardBatch at their largest
  int64_t page_size_;
  int64_t max_pages_;  // of a sequence
};

}  // namespace tessera
