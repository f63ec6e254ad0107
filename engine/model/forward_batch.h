// Everything that varies from one forward pass to the next, on the device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/kv_cache.h"
#include "engine/serving/scheduler.h"
#include "kernels/attention_params.h"
#include "kernels/backend_limits.h"
#include "kernels/device.h"
#include "kernels/sampling_params.h"

namespace tessera {

// The device tensors of a step, views of StepInputs' buffer but for tokens that the step before
// sampled.
struct ForwardBatch {
  Tensor token_ids;          // int32 [num_tokens]
  Tensor positions;          // int32 [num_tokens]
  Tensor kv_slots;           // int32 [num_tokens]
  AttentionBatch attention;  // which tokens belong to which sequence
  Tensor sampled_rows;       // int32 [num_sampled], tokens whose logits are needed
  SamplingBatch sampling;    // of these logits; num_candidates is left open
};

// The device buffer behind every ForwardBatch.
class StepInputs {
 public:
  StepInputs(Arena& arena, const BackendLimits& limits, int64_t page_size);

  // Describes the step and copies it to the device. The sampled rows are the last tokens of the
  // sequences that complete, in order. `sampled` are the step's tokens where they are known on the
  // device only, one per sequence, and empty where the host knows them.
  //   sampled int32 [scheduled.size()]
  ForwardBatch prepare(std::span<const ScheduledSequence> scheduled, const Tensor& sampled,
                       const KvCache& cache, Device& device);

  // Rows [begin, end) of the step as sampled rows, for logits that no sequence asks for.
  Tensor rows(int64_t begin, int64_t end, Device& device);

 private:
  Tensor buffer_;      // int32, for all tensors of a ForwardBatch at their largest
  int64_t max_pages_;  // of a sequence
};

}  // namespace tessera
