// The second part of tokenizer.json's pipeline: divides text into words.
#pragma once

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer_json/pattern.h"
#include "model_loaders/pause.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

// How much is left of the first `bytes` of a text from `begin` on.
constexpr size_t rest_of_first(size_t bytes, size_t begin) {
  return bytes - std::min(bytes, begin);
}

// Immutable; all functions are thread-safe.
class PreTokenizer {
 public:
  // Receives words in order. They last as long as the call.
  using Receive = std::function<void(std::string_view word)>;

  // Throws Error naming the step whose regular expression cannot be used.
  explicit PreTokenizer(const TokenizerJson& json);

  // Receives words as they are found. `first_bytes`: how much of the text's beginning stands for
  // the first character of a prompt, 0 where something comes before the text. Some models want a
  // space in front of what begins there.
  void split(std::string_view text, size_t first_bytes, const Pause& pause,
             const Receive& receive) const;

  // Whether some step drops a part of the text.
  bool drops_text() const;
  // Whether the model sees bytes instead of characters.
  bool is_byte_level() const { return is_byte_level_; }

 private:
  struct Step {
    PreTokenizerStep step;
    std::optional<Pattern> pattern;  // where it divides, unless nowhere
  };
  void run(size_t index, std::string_view text, size_t first_bytes, const Pause& pause,
           const Receive& receive) const;

  bool is_byte_level_;
  // Whether ByteLevel comes before the last step. What comes behind it looks at the alphabet of
  // byte_level.h, where a split may cut a character.
  bool splits_bytes_;
  std::vector<Step> steps_;
};

}  // namespace tessera
