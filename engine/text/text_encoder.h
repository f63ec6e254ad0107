// What turns text into tokens: one for each kind of tokenizer file.
#pragma once

#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace tessera {

// Immutable after loading; encode() is thread-safe.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  // Appends the tokens of `text`, which is UTF-8 and not empty. The rest as in Tokenizer::encode.
  virtual void encode(std::string_view text, bool at_start, const EncodeProgress& progress,
                      std::vector<TokenId>& tokens) const = 0;
};

}  // namespace tessera
