// What every token id means: the entries of the tokenizer's file and the tokens that are added to
// them.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/text/token_id.h"
#include "model_loaders/tokenizer_config.h"

namespace tessera {

struct VocabularyToken {
  std::string piece;         // "▁the", "<0x0A>", "<s>"
  std::string bytes;         // what it adds to a decoded text: " the", "\n", ""
  bool is_special = false;   // no text becomes it; adds nothing to one but a mark of thoughts
  bool is_text = false;      // added, but no more than text: encoding finds it in any
  bool strips_left = false;  // white space before it is not tokenised
  bool strips_right = false;
};

struct Vocabulary {
  std::vector<VocabularyToken> tokens;                      // by id
  std::unordered_map<std::string, TokenId> special_tokens;  // and added ones, by content

  std::optional<TokenId> special_token(std::string_view content) const;

  // Defines added.id, which is not negative. `bytes` is what it adds to a text unless it is
  // special, as it stays when it has been. A special mark of thoughts adds its content.
  void add_token(const AddedToken& added, const std::string& bytes);

  // Fills the ids below `size` that nothing defines.
  void add_undefined_tokens(size_t size);
};

}  // namespace tessera
