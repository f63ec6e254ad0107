// The first part of tokenizer.json's pipeline: changes the text before it is divided.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer_json/pattern.h"
#include "model_loaders/pause.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

// What became of a text.
struct Normalized {
  std::string_view text;
  // How much of its beginning stands for the first character of the text as it was given. None:
  // that is gone.
  size_t first_bytes = 0;
};

// Immutable; all functions are thread-safe.
class Normalizer {
 public:
  explicit Normalizer(const TokenizerJson& json);

  // `text`, which is UTF-8 and not empty, or what became of it, kept in `storage`.
  Normalized apply(std::string_view text, const Pause& pause, std::string& storage) const;

  // How many bytes of text become one byte at most; nothing where there is no limit.
  std::optional<int64_t> max_shrinking() const;

 private:
  struct Step {
    NormalizerStep step;
    std::optional<Pattern> pattern;  // of kReplace
  };
  std::vector<Step> steps_;
};

}  // namespace tessera
