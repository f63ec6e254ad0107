// What steps look for in text, behind a fence around PCRE2.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model_loaders/tokenizer_json.h"

namespace tessera {

// Bytes [begin, end) of a text.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
};

// Immutable; all functions are thread-safe.
class Pattern {
 public:
  // Throws Error, which begins with `where`, when a regular expression is not one, or not
  // supported.
  Pattern(const TokenizerPattern& pattern, const std::string& where);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  // The first match that begins at `from` or later. `text` is well-formed UTF-8, and a match may
  // look at what comes before `from`. Throws Error with the offset when the text needs more memory
  // or steps than a match may take.
  std::optional<TextSpan> find(std::string_view text, size_t from) const;

 private:
  struct Regex;
  std::optional<TextSpan> find_regex(std::string_view text, size_t from) const;

  std::string literal_;
  std::unique_ptr<Regex> regex_;  // or a literal
};

// Goes through all matches of a text, which do not overlap.
class PatternMatches {
 public:
  PatternMatches(const Pattern& pattern, std::string_view text) : pattern_(pattern), text_(text) {}
  std::optional<TextSpan> next();

 private:
  const Pattern& pattern_;
  std::string_view text_;
  size_t from_ = 0;
  std::optional<size_t> last_end_;
};

}  // namespace tessera
