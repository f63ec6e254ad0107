// What the length of a text says about its tokens before it has been tokenised, or even read.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

// A prompt has more tokens than the context holds.
class PromptTooLong : public Error {
 public:
  using Error::Error;
};

// What helps where a text alone is longer than the model's own context.
inline constexpr const char* kForLongTexts =
    "tessera summarize reads texts of any length in parts; --rope-scaling auto -c N takes more "
    "than the model was trained for; chat, generate and batch leave the middle out with "
    "--on-overflow middle";

struct TextLimit {
  int64_t context_size = 0;                // tokens
  std::optional<int64_t> max_token_bytes;  // see Tokenizer::max_token_bytes

  // Throws PromptTooLong, with the numbers, when the tokens of a text of `bytes` cannot fit the
  // context, whatever it says. `name` begins the message.
  void check(std::string_view name, uint64_t bytes) const;
};

}  // namespace tessera
