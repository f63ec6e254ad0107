// Everything that varies from one forward pass to the next, on the device.
#pragma once

#include "kernels/attention_params.h"
#include "kernels/sampling_params.h"

namespace tessera {

// The device tensors of a step, views of StepInputs' buffer. Where all ids are what the step before
// drew, in its order, they are the tensor in which it drew them.
struct ForwardBatch {
  Tensor token_ids;          // int32 [num_tokens]
  Tensor positions;          // int32 [num_tokens]
  Tensor kv_slots;           // int32 [num_tokens]
  AttentionBatch attention;  // which tokens belong to which sequence
  Tensor sampled_rows;       // int32 [num_sampled], tokens whose logits are needed
  // These tokens as the only ones of the same sequences. Not set where all tokens are sampled, or
  // none, or where decodes share prefixes that only attention of the whole step could read once for
  // all of them.
  AttentionBatch sampled_attention;
  SamplingBatch sampling;  // of these logits; num_candidates is left open
};

}  // namespace tessera
