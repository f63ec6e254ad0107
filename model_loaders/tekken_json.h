// tekken.json, Mistral's own file of a tokenizer, which releases since Mistral Small 3.2 have
// alone: a list of byte strings, of which the earlier are the more frequent, and a regular
// expression that divides text into words.
//
// Of two neighbours in a word, those become one token first whose joined bytes come first in the
// list, the leftmost where several do. The format and its meaning are those of the Python package
// mistral-common (its Tekkenizer, over OpenAI's tiktoken).
#pragma once

#include <cstdint>
#include <string>

#include "model_loaders/tokenizer_json.h"

namespace tessera {

// Whether a tokenizer's file is one of these: "tekken.json", "tekken_240911.json".
bool is_tekken_file(const std::string& path);

inline constexpr uint64_t kMaxTekkenJsonBytes = uint64_t{64} << 20;

// Reads the text of such a file as what a tokenizer.json would say: bytes in the alphabet of
// byte_level.h, and a merge for every way to divide a token into two others. A token's id is its
// place in the list behind the special tokens, which come first. `path` begins every message.
TokenizerJson parse_tekken_json(std::string text, const std::string& path);

}  // namespace tessera
