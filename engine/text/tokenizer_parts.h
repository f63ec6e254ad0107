// What a Tokenizer is made of, which each kind of tokenizer file fills in its own way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/text/text_encoder.h"
#include "engine/text/vocabulary.h"
#include "model_loaders/model_folder.h"

namespace tessera {

// What decoding leaves out where a text begins.
enum class LeadingSpace : uint8_t {
  kStays,
  kOneGoes,     // a space that the first token begins with
  kPrefixGoes,  // a space that the first token begins with as U+2581
  kAllGo,       // every U+2581 of the first token's piece, also within it
};

struct TokenizerParts {
  std::string path;
  Vocabulary vocabulary;
  std::unique_ptr<TextEncoder> encoder;
  LeadingSpace leading_space = LeadingSpace::kStays;
  std::optional<int64_t> max_token_bytes;
  std::optional<TokenId> bos_token;
  std::optional<TokenId> eos_token;
  std::vector<TokenId> prompt_prefix;
  std::vector<TokenId> prompt_suffix;
};

// From folder.tokenizer_path, which is of the one kind or the other.
TokenizerParts load_sentencepiece_tokenizer(const ModelFolder& folder);
TokenizerParts load_json_tokenizer(const ModelFolder& folder);

// The token that the folder's files name as `key`, which must exist, else `otherwise`, if it does.
std::optional<TokenId> named_token(const Vocabulary& vocabulary, const char* key,
                                   const std::optional<std::string>& configured,
                                   const std::string& otherwise, const ModelFolder& folder);

}  // namespace tessera
