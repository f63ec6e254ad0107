// The fence around SentencePiece: the packaged library (0.1.97) reads out of bounds, overflows its
// stack or throws on some malformed models, so that it is only ever given bytes written by
// serialize() from a model that passed parse_sentencepiece_model().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// U+2581, what stands for a space in a piece.
inline constexpr std::string_view kPieceSpace = "\xE2\x96\x81";

enum class PieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,      // what text without a piece becomes
  kControl = 3,      // never matches text
  kUserDefined = 4,  // matches text before anything else does
  kUnused = 5,
  kByte = 6,  // "<0x0A>": one byte of a character that has no piece
};

struct SentencePiece {
  std::string text;
  float score = 0.0f;
  PieceType type = PieceType::kNormal;
};

enum class SentencePieceAlgorithm : uint8_t { kUnigram = 1, kBpe = 2 };

// The parts of a ModelProto that decide how text becomes tokens. The defaults are the format's.
struct SentencePieceModel {
  std::vector<SentencePiece> pieces;  // by token id
  SentencePieceAlgorithm algorithm = SentencePieceAlgorithm::kUnigram;
  bool has_byte_fallback = false;
  bool adds_dummy_prefix = true;         // a space in front of every text
  bool removes_extra_whitespace = true;  // spaces at both ends and all but one of several
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
};

inline constexpr uint64_t kMaxSentencePieceModelBytes = uint64_t{64} << 20;

// Reads the bytes of a tokenizer.model. `path` begins every error message. Throws Error when they
// are not a SentencePiece model, when a piece could harm the library (too long, NUL, duplicate, not
// UTF-8, score not finite), when the vocabulary is inconsistent (not one unknown piece, an
// incomplete set of byte pieces) or needs something unsupported (a normaliser's charsmap).
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& path);

// The byte that a kByte piece stands for; nothing when `text` is not of the form "<0x0A>".
std::optional<char> byte_of_piece(std::string_view text);

// A ModelProto with the pieces and the algorithm of `model` that changes no white space: dummy
// prefix and extra spaces are the caller's affair. Control pieces are given names that no text
// contains, since the library would match one of a single character.
std::string serialize(const SentencePieceModel& model);

}  // namespace tessera
