#include "engine/text/vocabulary.h"

#include <algorithm>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

constexpr int64_t kMaxTokens = 4'000'000;

void make_control(SentencePiece& piece, const std::string& folder) {
  CHECK(piece.type != PieceType::kByte, folder, ": tokenizer_config.json calls the byte ",
        piece.text, " a special token");
  if (piece.type != PieceType::kUnknown) piece.type = PieceType::kControl;
}

// `piece` as the text that it stands for.
std::string with_spaces(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const size_t before = std::min(piece.find(kPieceSpace), piece.size());
    text += piece.substr(0, before);
    piece.remove_prefix(before);
    if (piece.empty()) break;
    text += ' ';
    piece.remove_prefix(kPieceSpace.size());
  }
  return text;
}

VocabularyToken make_token(const SentencePiece& piece) {
  switch (piece.type) {
    case PieceType::kUnknown:
    case PieceType::kControl:
      return {.piece = piece.text, .is_special = true};
    case PieceType::kByte:
      return {.piece = piece.text, .bytes = std::string(1, *byte_of_piece(piece.text))};
    case PieceType::kNormal:
    case PieceType::kUserDefined:
    case PieceType::kUnused:
      break;
  }
  return {.piece = piece.text, .bytes = with_spaces(piece.text)};
}

// Fills the ids below `size` that nothing defines.
void add_undefined_tokens(std::vector<VocabularyToken>& tokens, size_t size) {
  while (tokens.size() < size) {
    tokens.push_back({.piece = concat("<undefined ", tokens.size(), ">"), .is_special = true});
  }
}

void add_token(Vocabulary& vocabulary, const AddedToken& added) {
  const auto id = static_cast<size_t>(added.id);
  add_undefined_tokens(vocabulary.tokens, id + 1);
  VocabularyToken& token = vocabulary.tokens[id];
  const bool is_special = added.special || (token.piece == added.content && token.is_special);
  token = {.piece = added.content,
           .bytes = is_special ? "" : added.content,
           .is_special = is_special,
           .strips_left = added.lstrip,
           .strips_right = added.rstrip};
  vocabulary.special_tokens.insert_or_assign(added.content, static_cast<TokenId>(id));
}

}  // namespace

std::optional<TokenId> Vocabulary::special_token(std::string_view content) const {
  const auto found = special_tokens.find(std::string(content));
  if (found == special_tokens.end()) return std::nullopt;
  return found->second;
}

void mark_special_pieces(SentencePieceModel& model, const ModelFolder& folder) {
  const TokenizerConfig& config = folder.tokenizer;
  for (const AddedToken& added : config.added_tokens) {
    const auto id = static_cast<uint64_t>(added.id);
    if (added.special && id < model.pieces.size()) make_control(model.pieces[id], folder.path);
  }
  for (SentencePiece& piece : model.pieces) {
    if (piece.text == config.bos_token || piece.text == config.eos_token) {
      make_control(piece, folder.path);
    }
  }
}

Vocabulary make_vocabulary(const SentencePieceModel& model, const ModelFolder& folder) {
  Vocabulary vocabulary;
  vocabulary.tokens.reserve(model.pieces.size());
  for (const SentencePiece& piece : model.pieces) {
    vocabulary.tokens.push_back(make_token(piece));
    if (!vocabulary.tokens.back().is_special) continue;
    vocabulary.special_tokens.emplace(piece.text,
                                      static_cast<TokenId>(vocabulary.tokens.size() - 1));
  }
  for (const AddedToken& added : folder.tokenizer.added_tokens) {
    CHECK(added.id >= 0 && added.id < kMaxTokens, folder.path,
          ": tokenizer_config.json: added token ", printable(added.content), " has the id ",
          added.id);
    if (added.id < folder.config.vocab_size) add_token(vocabulary, added);
  }
  return vocabulary;
}

}  // namespace tessera
