// Draws the next token of every sequence from its logits, on the device.
#pragma once

#include <span>

#include "engine/model/drawn_token.h"
#include "engine/model/packed_upload.h"
#include "engine/model/token_chunk.h"
#include "kernels/operations.h"
#include "kernels/tensor/buffer.h"

namespace tessera {

// How the tokens of a step are drawn; num_candidates is left open. The tensors are there after
// inputs.upload().
SamplingBatch add_sampling(std::span<const TokenChunk> step, PackedUpload& inputs);
// Elements that add_sampling() takes, at most.
int64_t sampling_elements(int64_t max_draws);

class Sampler {
 public:
  // max_draws: tokens that a step draws; max_penalized_tokens: distinct tokens of each sequence
  // that the penalties of a step list.
  Sampler(Arena& arena, int64_t max_draws, int64_t max_penalized_tokens);

  // One token per row of logits float32 [num_sampled, vocab_size], which penalties change in place;
  // kNonFiniteLogits where the row is not finite. The rows are those of the chunks that ask for a
  // token, in order; `sampling` is what add_sampling() made of them. Ids at or above num_candidates
  // are never sampled (a vocabulary padded past its tokenizer). The result lies on the device, and
  // the next call overwrites it.
  //   returns int32 [num_sampled]
  // Where a chunk asks for log-probabilities, logits are the model's again afterwards.
  Tensor sample(const Tensor& logits, std::span<const TokenChunk> step, SamplingBatch sampling,
                int64_t num_candidates, Operations& operations);

  // Adds log-probabilities to the tokens of the last sample(), for which a chunk asked for them.
  // Waits for the device.
  void download_logprobs(std::span<DrawnToken> tokens, Device& device) const;

 private:
  PenaltyBatch penalize(const Tensor& logits, std::span<const TokenChunk> step,
                        Operations& operations);
  // A batch for the tokens with num_top alternatives each.
  LogprobBatch logprob_batch(const Tensor& tokens, int64_t num_top) const;

  Tensor tokens_;                             // int32 [max_draws]
  Tensor penalty_offsets_;                    // int32 [max_draws + 1]
  Tensor penalty_tokens_, penalty_counts_;    // int32 [max_penalized_tokens]
  Tensor before_penalties_;                   // float32 [max_penalized_tokens]
  Tensor repetition_, frequency_, presence_;  // float32 [max_draws]
  Tensor logprobs_;                           // float32 [max_draws]
  Tensor top_tokens_, top_logprobs_;          // [max_draws * kTopLogprobsLimits.high]
  LogprobBatch logprob_batch_;                // of the last sample() that was asked for them
};

}  // namespace tessera
