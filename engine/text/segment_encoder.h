// A rendered prompt as tokens.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"

namespace tessera {

// One piece of a rendered prompt: a special token of the template, or plain text (of the template
// or of a message).
struct Segment {
  enum class Kind : uint8_t { kSpecialToken, kText };
  Kind kind = Kind::kText;
  std::string content;
};

// Nothing is put in front: what a template renders is the whole prompt, as in transformers and
// vLLM, and begins with BOS where it writes one. Neighbouring texts are tokenised as one: to the
// model they always were. Special segments name special tokens of the tokenizer.
std::vector<TokenId> encode_segments(const Tokenizer& tokenizer, std::span<const Segment> segments,
                                     const EncodeProgress& progress = {});

}  // namespace tessera
