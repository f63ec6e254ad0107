// Writes SentencePiece models for tests, well-formed or not.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/protobuf_wire.h"
#include "engine/text/sentencepiece_model.h"

namespace tessera {

struct SentencePieceBuilder {
  struct Piece {
    std::string text;
    float score = 0.0f;
    uint64_t type = 1;
  };

  std::vector<Piece> pieces;
  uint64_t model_type = 2;  // BPE
  bool has_byte_fallback = true;
  bool adds_dummy_prefix = true;
  bool removes_extra_whitespace = false;
  std::string charsmap;
  std::string denormalizer_charsmap;

  void add(std::string_view text, PieceType type = PieceType::kNormal, float score = 0.0f) {
    pieces.push_back({std::string(text), score, static_cast<uint64_t>(type)});
  }

  void add_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof(text), "<0x%02X>", byte);
      add(text, PieceType::kByte);
    }
  }

  // Pieces that merge in this order.
  void add_merges(const std::vector<std::string>& texts) {
    float score = 0.0f;
    for (const std::string& text : texts) add(text, PieceType::kNormal, score -= 1.0f);
  }

  static std::string piece_message(const Piece& piece) {
    std::string message;
    write_bytes(message, 1, piece.text);
    write_float(message, 2, piece.score);
    write_varint(message, 3, piece.type);
    return message;
  }

  std::string build() const {
    std::string model;
    for (const Piece& piece : pieces) write_bytes(model, 1, piece_message(piece));
    std::string trainer;
    write_varint(trainer, 3, model_type);
    write_varint(trainer, 35, has_byte_fallback);
    write_bytes(model, 2, trainer);
    std::string normalizer;
    write_bytes(normalizer, 1, "identity");
    write_bytes(normalizer, 2, charsmap);
    write_varint(normalizer, 3, adds_dummy_prefix);
    write_varint(normalizer, 4, removes_extra_whitespace);
    write_bytes(model, 3, normalizer);
    std::string denormalizer;
    write_bytes(denormalizer, 2, denormalizer_charsmap);
    write_bytes(model, 5, denormalizer);
    return model;
  }
};

inline constexpr int32_t kFirstByteToken = 7;    // of small_model(): byte b is 7 + b
inline constexpr int32_t kFirstPiece = 7 + 256;  // the first of kSmallModelPieces
inline const std::vector<std::string> kSmallModelPieces = {
    "he", "ll", "llo", "hello", "▁hello", "or", "ld", "orld", "▁w",  "▁world", "▁▁",
    "▁a", "!!", "▁",   "h",     "e",      "l",  "o",  "w",    "r",   "d",      "a",
    "!",  "<",  ">",   "/",     "s",      "|",  "n",  "é",    "▁▁▁▁"};

// The token of one of kSmallModelPieces.
inline int32_t piece_token(std::string_view text) {
  for (size_t i = 0; i < kSmallModelPieces.size(); ++i) {
    if (kSmallModelPieces[i] == text) return kFirstPiece + static_cast<int32_t>(i);
  }
  return -1;
}

// A BPE model with byte fallback whose turn tokens are user defined, as in some published models.
inline SentencePieceBuilder small_model() {
  SentencePieceBuilder builder;
  builder.add("<unk>", PieceType::kUnknown);
  builder.add("<s>", PieceType::kControl);
  builder.add("</s>", PieceType::kControl);
  for (const char* const turn : {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"}) {
    builder.add(turn, PieceType::kUserDefined);
  }
  builder.add_bytes();
  builder.add_merges(kSmallModelPieces);
  return builder;
}

}  // namespace tessera
