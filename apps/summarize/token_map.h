// Which bytes of a text its tokens stand for, so that a text can be cut between tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace tessera {

struct TokenMap {
  // Of each token, bytes from the beginning of the text to its end; ascending, [number of tokens].
  // Tokens that make characters only together, such as the bytes of an emoji that the vocabulary
  // lacks, may all have the end of the last.
  std::vector<uint32_t> ends;

  int64_t num_tokens() const { return static_cast<int64_t>(ends.size()); }
};

// A long text is tokenised in pieces of up to 64 KiB that end with a line where there is one, and
// smaller ones where a tokenizer changes more of the text than runs of spaces (composes accents):
// there only the ends of pieces are ends of tokens. `text` is UTF-8, less than 4 GiB. Throws what
// `progress` throws.
TokenMap map_tokens(const Tokenizer& tokenizer, std::string_view text,
                    const EncodeProgress& progress = {});

}  // namespace tessera
