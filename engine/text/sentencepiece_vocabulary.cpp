#include "engine/text/sentencepiece_vocabulary.h"

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

}  // namespace

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
    if (added.id < folder.config.vocab_size) vocabulary.add_token(added, added.content);
  }
  return vocabulary;
}

}  // namespace tessera
