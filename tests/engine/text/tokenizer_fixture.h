// A SentencePiece tokenizer for tests.
#pragma once

#include <memory>
#include <string>

#include "tests/engine/text/sentencepiece_builder.h"
#include "tests/engine/text/tokenizer_file.h"

namespace tessera {

// Loads the model that `bytes` are, as if tokenizer_config.json were `config`.
inline std::unique_ptr<Tokenizer> load_tokenizer(const std::string& bytes,
                                                 const TokenizerConfig& config = {},
                                                 int64_t vocab_size = 1000) {
  return load_tokenizer_file("tokenizer.model", bytes, config, vocab_size);
}

// small_model() with its turn tokens called special, as tokenizer_config.json does.
inline TokenizerConfig small_config(bool legacy = false) {
  TokenizerConfig config;
  config.legacy = legacy;
  const char* const turns[] = {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"};
  for (int64_t i = 0; i < 4; ++i) {
    config.added_tokens.push_back({.id = 3 + i, .content = turns[i], .special = true});
  }
  return config;
}

}  // namespace tessera
