#include "engine/text/sentencepiece_model.h"

#include <bit>
#include <cmath>
#include <unordered_set>

#include "engine/text/protobuf_wire.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/foreign_format.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

constexpr size_t kMaxPieces = 2'000'000;
// The library's trie builder recurses once per byte; it overflows an 8 MiB stack above 100 kB.
constexpr size_t kMaxPieceBytes = 4096;
constexpr size_t kNumBytePieces = 256;

// Field numbers of sentencepiece_model.proto.
enum ModelField : uint32_t { kPieces = 1, kTrainerSpec, kNormalizerSpec, kDenormalizerSpec = 5 };
enum PieceField : uint32_t { kText = 1, kScore, kType };
enum TrainerField : uint32_t {
  kModelType = 3,
  kTreatWhitespaceAsSuffix = 24,
  kByteFallback = 35,
  kBosPiece = 46,
  kEosPiece = 47,
};
enum NormalizerField : uint32_t {
  kPrecompiledCharsmap = 2,
  kAddDummyPrefix,
  kRemoveExtraWhitespaces,
  kEscapeWhitespaces,
};

class ModelParser {
 public:
  explicit ModelParser(const std::string& path)
      : path_(path), malformed_(path + ": not a valid SentencePiece model") {}

  SentencePieceModel parse(std::string_view bytes) {
    if (const auto error = recognise_lfs_pointer(bytes, path_, "a tokenizer")) throw *error;
    ProtobufReader reader(bytes, malformed_);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case kPieces:
          parse_piece(bytes_of(*field));
          break;
        case kTrainerSpec:
          has_trainer_ = true;
          parse_trainer(bytes_of(*field));
          break;
        case kNormalizerSpec:
          has_normalizer_ = true;
          parse_normalizer(bytes_of(*field));
          break;
        case kDenormalizerSpec:
          refuse_denormalizer(bytes_of(*field));
          break;
      }
    }
    check_vocabulary();
    return std::move(model_);
  }

 private:
  void parse_piece(std::string_view message) {
    const size_t index = model_.pieces.size();
    CHECK(index < kMaxPieces, path_, ": more than ", kMaxPieces, " pieces");
    SentencePiece piece;
    ProtobufReader reader(message, malformed_);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case kText:
          CHECK(bytes_of(*field).size() <= kMaxPieceBytes, path_, ": piece ", index, " is ",
                field->bytes.size(), " bytes long; the limit is ", kMaxPieceBytes);
          piece.text = field->bytes;
          break;
        case kScore:
          expect(*field, WireType::kFixed32);
          piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
          break;
        case kType: {
          const uint64_t type = varint_of(*field);
          CHECK(type >= 1 && type <= 6, path_, ": piece ", index, " has the unknown type ", type);
          piece.type = static_cast<PieceType>(type);
          break;
        }
      }
    }
    check_piece(piece, index);
    model_.pieces.push_back(std::move(piece));
  }

  void check_piece(const SentencePiece& piece, size_t index) const {
    const std::string& text = piece.text;
    CHECK(!text.empty(), path_, ": piece ", index, " is empty");
    CHECK(text.find('\0') == std::string::npos, path_, ": piece ", index, " (", printable(text),
          ") contains a NUL byte");
    CHECK(!find_invalid_utf8(text), path_, ": piece ", index, " (", printable(text),
          ") is not UTF-8");
    CHECK(std::isfinite(piece.score), path_, ": piece ", index, " (", printable(text),
          ") has the score ", piece.score);
    CHECK(piece.type != PieceType::kByte || byte_of_piece(text), path_, ": piece ", index, " (",
          printable(text), ") is of type BYTE but not of the form <0x0A>");
  }

  void parse_trainer(std::string_view message) {
    ProtobufReader reader(message, malformed_);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case kModelType: {
          const uint64_t type = varint_of(*field);
          CHECK(type == 1 || type == 2, path_, ": unsupported model type ", type,
                "; only 1 (unigram) and 2 (BPE) are");
          model_.algorithm = static_cast<SentencePieceAlgorithm>(type);
          break;
        }
        case kTreatWhitespaceAsSuffix:
          CHECK(varint_of(*field) == 0, path_, ": unsupported: treat_whitespace_as_suffix");
          break;
        case kByteFallback:
          model_.has_byte_fallback = varint_of(*field) != 0;
          break;
        case kBosPiece:
          model_.bos_piece = bytes_of(*field);
          break;
        case kEosPiece:
          model_.eos_piece = bytes_of(*field);
          break;
      }
    }
  }

  void parse_normalizer(std::string_view message) {
    ProtobufReader reader(message, malformed_);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case kPrecompiledCharsmap:
          CHECK(bytes_of(*field).empty(), path_, ": unsupported normaliser (precompiled_charsmap)");
          break;
        case kAddDummyPrefix:
          model_.adds_dummy_prefix = varint_of(*field) != 0;
          break;
        case kRemoveExtraWhitespaces:
          model_.removes_extra_whitespace = varint_of(*field) != 0;
          break;
        case kEscapeWhitespaces:
          CHECK(varint_of(*field) != 0, path_, ": unsupported: escape_whitespaces is false");
          break;
      }
    }
  }

  void refuse_denormalizer(std::string_view message) const {
    ProtobufReader reader(message, malformed_);
    while (const auto field = reader.next()) {
      CHECK(field->number != kPrecompiledCharsmap || field->bytes.empty(), path_,
            ": unsupported denormaliser (precompiled_charsmap)");
    }
  }

  void check_vocabulary() const {
    CHECK(!model_.pieces.empty(), malformed_, ": it has no pieces");
    // They follow the pieces: a file that was cut short lacks them.
    CHECK(has_trainer_ && has_normalizer_, malformed_, ": it ends after ",
          counted(model_.pieces.size(), "piece"), ", without the settings that should follow");
    size_t num_unknown = 0, num_bytes = 0;
    std::unordered_set<std::string_view> texts;
    for (size_t i = 0; i < model_.pieces.size(); ++i) {
      const SentencePiece& piece = model_.pieces[i];
      CHECK(texts.insert(piece.text).second, path_, ": piece ", i, " (", printable(piece.text),
            ") occurs twice");
      if (piece.type == PieceType::kUnknown) ++num_unknown;
      if (piece.type == PieceType::kByte) ++num_bytes;
    }
    CHECK(num_unknown == 1, path_, ": ", counted(num_unknown, "piece"),
          " of type UNKNOWN where there must be one");
    const size_t expected_bytes = model_.has_byte_fallback ? kNumBytePieces : 0;
    CHECK(num_bytes == expected_bytes, path_, ": ", counted(num_bytes, "byte piece"),
          " where byte_fallback = ", model_.has_byte_fallback ? "true" : "false", " needs ",
          expected_bytes);
  }

  void expect(const ProtobufField& field, WireType type) const {
    CHECK(field.type == type, malformed_, ": field ", field.number, " has wire type ",
          static_cast<int>(field.type), " instead of ", static_cast<int>(type));
  }
  uint64_t varint_of(const ProtobufField& field) const {
    expect(field, WireType::kVarint);
    return field.value;
  }
  std::string_view bytes_of(const ProtobufField& field) const {
    expect(field, WireType::kBytes);
    return field.bytes;
  }

  const std::string& path_;
  const std::string malformed_;
  SentencePieceModel model_;
  bool has_trainer_ = false;
  bool has_normalizer_ = false;
};

std::optional<int> hexadecimal_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return std::nullopt;
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& path) {
  return ModelParser(path).parse(bytes);
}

std::optional<char> byte_of_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return std::nullopt;
  const auto high = hexadecimal_digit(text[3]), low = hexadecimal_digit(text[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high << 4 | *low);
}

std::string serialize(const SentencePieceModel& model) {
  std::string proto;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    std::string message;
    write_bytes(message, kText,
                piece.type == PieceType::kControl ? concat("<control ", i, ">") : piece.text);
    write_float(message, kScore, piece.score);
    write_varint(message, kType, static_cast<uint64_t>(piece.type));
    write_bytes(proto, kPieces, message);
  }
  std::string trainer;
  write_varint(trainer, kModelType, static_cast<uint64_t>(model.algorithm));
  write_varint(trainer, kByteFallback, model.has_byte_fallback);
  write_bytes(proto, kTrainerSpec, trainer);
  std::string normalizer;
  write_varint(normalizer, kAddDummyPrefix, false);
  write_varint(normalizer, kRemoveExtraWhitespaces, false);
  write_bytes(proto, kNormalizerSpec, normalizer);
  return proto;
}

}  // namespace tessera
