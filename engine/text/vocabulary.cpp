#include "engine/text/vocabulary.h"

#include "engine/text/thinking_marks.h"
#include "kernels/tensor/check.h"

namespace tessera {

std::optional<TokenId> Vocabulary::special_token(std::string_view content) const {
  const auto found = special_tokens.find(std::string(content));
  if (found == special_tokens.end()) return std::nullopt;
  return found->second;
}

void Vocabulary::add_undefined_tokens(size_t size) {
  while (tokens.size() < size) {
    tokens.push_back({.piece = concat("<undefined ", tokens.size(), ">"), .is_special = true});
  }
}

void Vocabulary::add_token(const AddedToken& added, const std::string& bytes) {
  const auto id = static_cast<size_t>(added.id);
  add_undefined_tokens(id + 1);
  VocabularyToken& token = tokens[id];
  const bool is_special = added.special || (token.piece == added.content && token.is_special);
  token = {.piece = added.content,
           .bytes = !is_special                       ? bytes
                    : is_thinking_mark(added.content) ? added.content
                                                      : "",
           .is_special = is_special,
           .strips_left = added.lstrip,
           .strips_right = added.rstrip};
  special_tokens.insert_or_assign(added.content, static_cast<TokenId>(id));
}

}  // namespace tessera
