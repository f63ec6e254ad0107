// The third part of tokenizer.json's pipeline: byte-pair encoding makes tokens of a word.
//
// A word begins as a token for each character (or byte). Then, again and again, the two neighbours
// whose merge has the lowest rank become one token, the leftmost where several do. A heap of
// the possible merges makes this O(n log n); for the few symbols of most words a list will do.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/text/text_chunker.h"
#include "engine/text/tokenizer_json/piece_table.h"
#include "engine/text/vocabulary.h"
#include "model_loaders/pause.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

// Immutable; all functions are thread-safe.
class BpeModel {
 public:
  // What encode() works with, kept from word to word.
  struct Memory {
    struct Symbol {
      TokenId id = 0;
      int32_t previous = -1;
      int32_t next = -1;
      bool is_gone = false;  // merged into the one before it
    };
    struct Candidate {
      uint32_t rank = 0;
      int32_t position = 0;
      TokenId id = 0;  // what the merge gives
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  // No text becomes a token that `vocabulary`, which has every id of the model, calls special.
  // `is_byte_level`: words are bytes, and pieces are written in the alphabet of byte_level.h.
  // Throws Error naming a merge whose parts or result are missing, or a piece that is there twice.
  BpeModel(const TokenizerJson& json, const Vocabulary& vocabulary, bool is_byte_level);

  // Appends the tokens of a word, which is UTF-8 unless the model sees bytes, and not empty.
  void encode(std::string_view word, const Pause& pause, Memory& memory,
              std::vector<TokenId>& tokens) const;

  // Finds where a long word may be cut without changing its tokens; nullptr where unknown.
  const TextChunker* chunker() const { return chunker_ ? &*chunker_ : nullptr; }

  // The most bytes of a word that become one token; nothing where there is no such limit.
  std::optional<int64_t> max_token_bytes() const;

 private:
  bool has_all_bytes() const;
  void read_pieces(const TokenizerJson& json, const Vocabulary& vocabulary);
  void read_merges(const TokenizerJson& json, const Vocabulary& vocabulary,
                   const PieceTable& pieces);
  class FirstSymbols;
  void start_with_bytes(std::string_view word, const Pause& pause, Memory& memory) const;
  void start_with_characters(std::string_view word, const Pause& pause, Memory& memory) const;
  // Whether all of the character's bytes have tokens such as <0x0A>, which are then added.
  bool add_byte_tokens(std::string_view character, Memory& memory) const;
  void merge(const Pause& pause, Memory& memory) const;
  void merge_few(Memory& memory) const;

  bool is_byte_level_;
  bool ignores_merges_;
  bool fuses_unknown_;
  std::optional<TokenId> unknown_token_;
  std::array<TokenId, 256> single_ids_;    // of bytes, or of the characters of ASCII; -1: none
  std::array<TokenId, 256> fallback_ids_;  // of <0x00> and so on; -1: none
  PieceTable characters_;  // pieces of one character, or with ignores_merges_ all of them
  MergeTable merges_;
  std::optional<TextChunker> chunker_;
  size_t longest_piece_ = 1;  // bytes
};

}  // namespace tessera
