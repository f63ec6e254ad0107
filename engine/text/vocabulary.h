// What every token id means: the pieces of the SentencePiece model and the tokens that
// tokenizer_config.json adds to them.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/text/sentencepiece_model.h"
#include "engine/text/tokenizer.h"
#include "model_loaders/model_folder.h"

namespace tessera {

struct VocabularyToken {
  std::string piece;         // "▁the", "<0x0A>", "<s>"
  std::string bytes;         // what it adds to a decoded text: " the", "\n", ""
  bool is_special = false;   // adds nothing to a text, and no text becomes it
  bool strips_left = false;  // white space before it is not tokenised
  bool strips_right = false;
};

struct Vocabulary {
  std::vector<VocabularyToken> tokens;                      // by id
  std::unordered_map<std::string, TokenId> special_tokens;  // and added ones, by content

  std::optional<TokenId> special_token(std::string_view content) const;
};

// Makes control pieces of those that the folder's files call special or name as BOS or EOS: models
// that declare them user defined would let anyone type the end of a turn.
void mark_special_pieces(SentencePieceModel& model, const ModelFolder& folder);

// Added tokens from the folder's vocab_size on are left out: the embedding table has no row for
// them. Throws Error when an id is negative or absurd.
Vocabulary make_vocabulary(const SentencePieceModel& model, const ModelFolder& folder);

}  // namespace tessera
