// Picks the next token of every sequence from its logits.
#pragma once

#include <span>
#include <vector>

#include "engine/scheduler.h"
#include "kernels/backend.h"

namespace tessera {

class Sampler {
 public:
  // max_listed: distinct tokens that the penalties of one sequence may list.
  Sampler(Arena& arena, int64_t max_sequences, int64_t max_listed);

  // One token per row of logits float32 [num_completing, vocab_size], which penalties change in
  // place; kNonFiniteLogits where the row is not finite. The rows are those of the sequences that
  // complete, in order. Ids at or above num_candidates are never sampled (a vocabulary padded past
  // its tokenizer). The result lies on the device, and the next call overwrites it.
  //   returns int32 [num_completing]
  Tensor sample(const Tensor& logits, std::span<const ScheduledSequence> scheduled,
                int64_t num_candidates, Backend& backend);

 private:
  void penalize(const Tensor& logits, std::span<const Sequence* const> sequences, Backend& backend);

  Tensor tokens_;                             // int32 [max_sequences]
  Tensor batch_;                              // int32, for all tensors of a SamplingBatch
  Tensor penalty_offsets_;                    // int32 [max_sequences + 1]
  Tensor penalty_tokens_, penalty_counts_;    // int32 [max_sequences * max_listed]
  Tensor repetition_, frequency_, presence_;  // float32 [max_sequences]
};

}  // namespace tessera
