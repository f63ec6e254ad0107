// What the host knows of the sequences that a step attends to.
#pragma once

#include <span>

#include "engine/model/token_chunk.h"
#include "kernels/attention_params.h"

namespace tessera {

// The numbers of AttentionBatch, without its tensors.
AttentionBatch attention_sizes(std::span<const TokenChunk> step);

// The same where the tokens behind which the step draws are the only ones of their sequences.
AttentionBatch sampled_attention_sizes(std::span<const TokenChunk> step);

}  // namespace tessera
