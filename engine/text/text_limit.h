// What the length of a text says about its tokens before it has been tokenised, or even read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

// A prompt has more tokens than the context holds.
class PromptTooLong : public Error {
 public:
  using Error::Error;
};

struct TextLimit {
  int64_t context_size = 0;                // tokens
  std::optional<int64_t> max_token_bytes;  // see Tokenizer::max_token_bytes
  std::string longer_context;              // what gives one, or "": see engine/longer_context.h

  // Throws PromptTooLong, with the numbers, when the tokens of a text of `bytes` cannot fit the
  // context, whatever it says. `name` begins the message.
  void check(std::string_view name, uint64_t bytes) const;
  // What helps where a text alone is longer than the context.
  std::string hint() const;
};

}  // namespace tessera
