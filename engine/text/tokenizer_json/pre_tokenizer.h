// The second part of tokenizer.json's pipeline: divides text into words.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer_json/pattern.h"
#include "model_loaders/pause.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

// Immutable; all functions are thread-safe.
class PreTokenizer {
 public:
  // Receives words in order. They last as long as the call.
  using Receive = std::function<void(std::string_view word)>;

  // Throws Error naming the step whose regular expression cannot be used.
  explicit PreTokenizer(const TokenizerJson& json);

  // Receives words as they are found. `at_start`: nothing comes before the text, where some models
  // want a space.
  void split(std::string_view text, bool at_start, const Pause& pause,
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
  void run(size_t index, std::string_view text, bool at_start, const Pause& pause,
           const Receive& receive) const;

  bool is_byte_level_;
  // Whether ByteLevel comes before the last step. What comes behind it looks at the alphabet of
  // byte_level.h, where a split may cut a character.
  bool splits_bytes_;
  std::vector<Step> steps_;
};

}  // namespace tessera
