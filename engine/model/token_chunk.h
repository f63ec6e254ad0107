// What a step computes of one sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/model/sampling_params.h"
#include "engine/text/token_id.h"

namespace tessera {

// Tokens [begin, end()) of a sequence and, if the answer goes on after them, how its next token is
// drawn. The last of them may be drafts, tokens that are only supposed: then one token is drawn
// behind the token before them and one behind each of them. Refers to memory of whoever asks for
// the step, who keeps it until the step is launched.
struct TokenChunk {
  // The sequence's tokens from its first on, as far as the host knows them.
  std::span<const TokenId> tokens;
  std::span<const TokenId> drafts = {};  // behind these
  std::span<const int32_t> block_table;  // the sequence's KV pages, for end() tokens or more
  int64_t begin = 0;                     // position of the first token
  int64_t num_tokens = 0;
  // For a chunk of one token that the host does not know yet: the token is the draw_index-th of
  // those that the step before draws.
  std::optional<int64_t> draw_index = {};
  const SamplingParams* sampling = nullptr;  // of the token after the chunk; null: none is drawn
  // The index, in its answer, of that token or of the first of several: the draw depends on it and
  // on the seed.
  int64_t answer_index = 0;
  std::span<const TokenId> barred = {};  // what that token may not be

  int64_t end() const { return begin + num_tokens; }
  int64_t num_draws() const { return sampling == nullptr ? 0 : 1 + std::ssize(drafts); }
  // The token of a position; nothing for one that only the device knows.
  std::optional<TokenId> token(int64_t position) const {
    const int64_t behind = position - std::ssize(tokens);
    if (behind < 0) return tokens[static_cast<size_t>(position)];
    if (behind < std::ssize(drafts)) return drafts[static_cast<size_t>(behind)];
    return std::nullopt;
  }
};

}  // namespace tessera
