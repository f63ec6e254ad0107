// The third part of tokenizer.json's pipeline: a unigram model makes tokens of a word.
//
// Each piece has a score, the logarithm of its probability. Of all ways to write a word as pieces,
// the one with the highest sum is taken, which is found from left to right: of all that end at a
// place, only the best goes on (Viterbi). Time grows with the word times the longest piece.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer_json/piece_trie.h"
#include "engine/text/vocabulary.h"
#include "model_loaders/pause.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

// Immutable; all functions are thread-safe.
class UnigramModel {
 public:
  // What encode() works with, kept from word to word.
  struct Memory {
    // The best way to write the word up to a byte.
    struct Way {
      double score = 0.0;
      int32_t last_begin = -1;  // of its last token; -1: there is no way yet
      TokenId last_token = 0;
    };
    std::vector<Way> ways;     // one for each byte, and the end
    std::vector<size_t> ends;  // of the best way's tokens, the last first
  };

  // No text becomes a token that `vocabulary`, which has every id of the model, calls special.
  // Throws Error naming a piece that is there twice.
  UnigramModel(const TokenizerJson& json, const Vocabulary& vocabulary);

  // Appends the tokens of a word, which is UTF-8 and not empty. Characters that no piece covers are
  // written as tokens of their bytes where the model has them, else those next to each other become
  // one unknown token.
  void encode(std::string_view word, const Pause& pause, Memory& memory,
              std::vector<TokenId>& tokens) const;

  // The most bytes of a word that become one token; nothing where there is no such limit.
  std::optional<int64_t> max_token_bytes() const;

 private:
  void find_ways(std::string_view word, const Pause& pause, Memory& memory) const;
  void append_unknown(std::string_view characters, std::vector<TokenId>& tokens) const;
  bool has_byte_tokens(std::string_view characters) const;

  PieceTrie pieces_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0.0;  // of a character that is no piece
  TokenId unknown_token_ = 0;
  std::array<TokenId, 256> byte_ids_;  // of <0x00> and so on; -1: none
  size_t longest_piece_ = 1;           // bytes
};

}  // namespace tessera
