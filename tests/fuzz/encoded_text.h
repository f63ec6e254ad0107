// What must be true of a tokenizer and of the tokens of a text, whatever file it was made of.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/oracle.h"

namespace tessera {

inline void check_text(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<TokenId> tokens = tokenizer.encode(text);
  const auto most = tokenizer.max_token_bytes();
  require(!most || tokens.size() * static_cast<size_t>(*most) >= text.size(),
          "no token is longer than the most");
  for (const TokenId id : tokens) {
    require(id >= 0 && id < tokenizer.size(), "tokens of a text are in the vocabulary");
  }
  TextStream stream(tokenizer);
  std::string streamed;
  for (const TokenId id : tokens) streamed += stream.append(id);
  streamed += stream.finish();
  require_utf8(streamed, "decoded text");
  require(streamed == tokenizer.decode(tokens), "text decoded token by token is the same");
}

// Loads `bytes` as the tokenizer's file and looks at what it makes of the texts.
inline void check_tokenizer(const MemoryFolder& file, std::string_view bytes,
                            std::span<const std::string_view> texts) {
  file.replace(bytes);
  ModelFolder folder;
  folder.tokenizer_path = file.path();
  folder.config.vocab_size = 1000;
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(folder);
  for (const std::string_view text : texts) check_text(*tokenizer, text);
}

}  // namespace tessera
