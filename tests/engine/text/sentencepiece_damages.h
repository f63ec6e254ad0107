// Ways in which a tokenizer.model can be wrong.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>

#include "tests/engine/text/sentencepiece_builder.h"

namespace tessera {

// One damage to small_model(), and what the message says of it.
struct Damage {
  const char* name;
  std::function<void(SentencePieceBuilder&)> apply;
  std::string message;

  friend std::ostream& operator<<(std::ostream& stream, const Damage& damage) {
    return stream << damage.name;
  }
};

inline const float kInfinity = std::numeric_limits<float>::infinity();

inline const Damage kDamages[] = {
    {"LongPiece", [](auto& model) { model.pieces[280].text = std::string(5'000'000, 'x'); },
     "piece 280 is 5000000 bytes long; the limit is 4096"},
    {"NulPiece", [](auto& model) { model.pieces[280].text = std::string("\0abc", 4); },
     R"(piece 280 (\x00abc) contains a NUL byte)"},
    {"EmptyPiece", [](auto& model) { model.pieces[280].text.clear(); }, "piece 280 is empty"},
    {"NotUtf8", [](auto& model) { model.pieces[280].text = "a\xC3"; }, "is not UTF-8"},
    {"Duplicate", [](auto& model) { model.pieces[280].text = "hello"; }, "(hello) occurs twice"},
    {"DuplicateOfControl", [](auto& model) { model.pieces[280].text = "</s>"; }, "occurs twice"},
    {"NoUnknown", [](auto& model) { model.pieces[0].type = 1; }, "0 pieces of type UNKNOWN"},
    {"TwoUnknown", [](auto& model) { model.pieces[1].type = 2; }, "2 pieces of type UNKNOWN"},
    {"NanScore", [](auto& model) { model.pieces[280].score = std::nanf(""); },
     "piece 280 (o) has the score nan"},
    {"InfiniteScore", [](auto& model) { model.pieces[280].score = -kInfinity; },
     "has the score -inf"},
    {"TypeZero", [](auto& model) { model.pieces[280].type = 0; },
     "piece 280 has the unknown type 0"},
    {"TypeSeven", [](auto& model) { model.pieces[280].type = 7; }, "the unknown type 7"},
    {"HugeType", [](auto& model) { model.pieces[280].type = ~uint64_t{0}; },
     "the unknown type 18446744073709551615"},
    {"MissingByte", [](auto& model) { model.pieces.erase(model.pieces.begin() + 20); },
     "255 byte pieces where byte_fallback = true needs 256"},
    {"BytesWithoutFallback", [](auto& model) { model.has_byte_fallback = false; },
     "256 byte pieces where byte_fallback = false needs 0"},
    {"BadBytePiece", [](auto& model) { model.pieces[20].text = "<0xGG>"; }, "of the form <0x0A>"},
    {"NoPieces", [](auto& model) { model.pieces.clear(); }, "it has no pieces"},
    {"Charsmap", [](auto& model) { model.charsmap = "\x08"; },
     "unsupported normaliser (precompiled_charsmap)"},
    {"Denormalizer", [](auto& model) { model.denormalizer_charsmap = "\x08"; },
     "unsupported denormaliser"},
    {"WordModel", [](auto& model) { model.model_type = 3; }, "unsupported model type 3"},
};

}  // namespace tessera
