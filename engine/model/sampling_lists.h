// How the tokens of a step are drawn, as lists on the host. Entries are those of the chunks that
// ask for a token, in order, one for each token of a chunk that asks for several. Such chunks have
// neither penalties nor barred tokens, which would differ from token to token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/token_chunk.h"

namespace tessera {

// See SamplingBatch, whose tensors are these.
struct SamplingLists {
  std::vector<float> temperature;
  std::vector<int32_t> top_k;
  std::vector<float> top_p;
  std::vector<float> min_p;
  std::vector<int32_t> random;  // low word, high word of each: of the seed and the answer's index

  int64_t num_tokens() const { return static_cast<int64_t>(temperature.size()); }
};
SamplingLists list_sampling(std::span<const TokenChunk> step);

// A chunk has no more barred tokens: models have a handful, and others are refused at load.
inline constexpr size_t kMaxBarredTokens = 64;

// See PenaltyBatch, whose tensors are these. Sequences without a penalty and barred tokens list no
// tokens.
struct PenaltyLists {
  std::vector<int32_t> offsets;
  std::vector<int32_t> tokens;
  std::vector<int32_t> counts;
  std::vector<float> repetition;
  std::vector<float> frequency;
  std::vector<float> presence;
};
PenaltyLists list_penalties(std::span<const TokenChunk> step);

// Whether the draw of any token has a penalty or a barred token.
bool has_penalized_draw(std::span<const TokenChunk> step);

// The largest SamplingParams::top_logprobs of the draws; nothing where none asks for any.
std::optional<int64_t> num_top_logprobs(std::span<const TokenChunk> step);

}  // namespace tessera
