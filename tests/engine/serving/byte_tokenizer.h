// A tokenizer for tests of what happens to tokens: every byte is one.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tests/engine/text/tokenizer_fixture.h"

namespace tessera {

inline std::unique_ptr<Tokenizer> load_byte_tokenizer() {
  return load_tokenizer(small_model().build(), small_config());
}

inline constexpr TokenId token_of(char byte) {
  return kFirstByteToken + static_cast<unsigned char>(byte);
}

inline std::vector<TokenId> tokens_of(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(token_of(byte));
  return tokens;
}

}  // namespace tessera
