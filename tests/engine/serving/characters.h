// Texts as tokens for what looks at tokens alone: each byte is one.
#pragma once

#include <string_view>
#include <vector>

#include "engine/text/token_id.h"

namespace tessera {

inline std::vector<TokenId> characters_of(std::string_view text) {
  return {text.begin(), text.end()};
}

}  // namespace tessera
