// tokenizer.json's way from tokens to text, token by token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer_parts.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

class TokenDecoder {
 public:
  // Throws Error naming the step that stands where it cannot be applied token by token.
  explicit TokenDecoder(const TokenizerJson& json);

  // What a token that is not special adds to a text, which need not be whole characters.
  std::string bytes_of(std::string_view piece) const;

  LeadingSpace leading_space() const { return leading_space_; }

 private:
  std::vector<DecoderStep> steps_;
  LeadingSpace leading_space_ = LeadingSpace::kStays;
};

}  // namespace tessera
