// Where a long text may be cut without changing its tokens.
//
// A token is a piece of the vocabulary or a part of one character. Two neighbouring characters that
// are neighbours in no piece therefore always end up in different tokens, and what stands left of
// them has no influence on what stands right: both sides may be tokenised on their own. Most
// vocabularies have no piece with a space after a letter, so that nearly every word is such a
// place.
//
// For BPE the tokens are exactly the same. A unigram model adds up scores in float over the whole
// text, so that of two segmentations with equal scores a chunk may get the other one.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "engine/text/sentencepiece_model.h"

namespace tessera {

class TextChunker {
 public:
  explicit TextChunker(const SentencePieceModel& model);
  // Pieces are added one by one.
  TextChunker() = default;
  void add(std::string_view piece);

  // The beginning of `text` up to the first place at or after `min_bytes` (at least 1) where it may
  // be cut; all of it when there is none. Stops looking behind `max_bytes`: what is longer may not
  // be cut there. `text` is well-formed UTF-8.
  std::string_view first_chunk(std::string_view text, size_t min_bytes,
                               size_t max_bytes = std::string_view::npos) const;

 private:
  bool are_neighbours(std::string_view left, std::string_view right) const;

  // Of two ASCII characters, where a space may be written as U+2581; by their codes.
  std::bitset<size_t{128} * 128> ascii_pairs_;
  // Of others: two characters, at most 8 bytes, as one number.
  std::unordered_set<uint64_t> pairs_;
};

}  // namespace tessera
