// Where a text is cut so that as little as possible is torn apart.
#pragma once

#include <cstdint>
#include <string_view>

#include "apps/summarize/slice.h"
#include "apps/summarize/token_map.h"

namespace tessera {

// What ends at a place in a text, the better cuts last.
enum class CutKind : uint8_t { kNone, kCharacter, kWord, kSentence, kParagraph };

// What ends before byte `at`: kNone within a character and between a carriage return and its line
// feed, kSentence also at the end of a line, kParagraph behind an empty line.
CutKind cut_kind(std::string_view text, size_t at);

// The cuts between the tokens of a text. Cut k is before token k; both must outlive this.
class TokenCuts {
 public:
  TokenCuts(std::string_view text, const TokenMap& map) : text_(text), map_(map) {}

  int64_t num_tokens() const { return map_.num_tokens(); }
  int64_t byte_of(int64_t cut) const;
  // kNone between tokens that make a character only together.
  CutKind kind_of(int64_t cut) const;

  // The last cut in (begin, limit] of the best kind that is found in its second half; any other
  // where there is none, and behind `limit` where not even a character ends before it.
  int64_t last_cut(int64_t begin, int64_t limit) const;
  // The first cut in [low, high) where a sentence ends, else a word, else a character; the first at
  // `high` or behind it where there is none.
  int64_t first_cut(int64_t low, int64_t high) const;

  Slice slice(size_t document, int64_t begin, int64_t end) const {
    return {document, {begin, end}, {byte_of(begin), byte_of(end)}};
  }

 private:
  // The first cut at `cut` or behind it that is not within a character.
  int64_t first_character_end(int64_t cut) const;

  std::string_view text_;
  const TokenMap& map_;
};

}  // namespace tessera
