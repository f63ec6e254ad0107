#include "engine/text/text_chunker.h"

#include <cstring>
#include <string>

#include "engine/text/utf8.h"

namespace tessera {
namespace {

std::string_view first_character(std::string_view text) {
  return text.substr(0, utf8_character_bytes(text[0]));
}

// Where ascii_pairs_ has the pair; nothing for one that is not ASCII.
std::optional<size_t> ascii_pair(std::string_view left, std::string_view right) {
  const auto code = [](std::string_view character) -> size_t {
    return character == kPieceSpace ? ' ' : static_cast<unsigned char>(character[0]);
  };
  const size_t left_code = code(left);
  const size_t right_code = code(right);
  if (left_code >= 128 || right_code >= 128) return std::nullopt;
  return left_code * 128 + right_code;
}

uint64_t pair_key(std::string_view left, std::string_view right) {
  if (left == " ") left = kPieceSpace;
  if (right == " ") right = kPieceSpace;
  uint64_t key = 0;
  std::memcpy(&key, left.data(), left.size());
  std::memcpy(reinterpret_cast<char*>(&key) + left.size(), right.data(), right.size());
  return key;
}

}  // namespace

TextChunker::TextChunker(const SentencePieceModel& model) {
  for (const SentencePiece& piece : model.pieces) add(piece.text);
}

void TextChunker::add(std::string_view piece) {
  std::string_view left = first_character(piece);
  for (piece.remove_prefix(left.size()); !piece.empty(); piece.remove_prefix(left.size())) {
    const std::string_view right = first_character(piece);
    if (const auto index = ascii_pair(left, right)) {
      ascii_pairs_.set(*index);
    } else {
      pairs_.insert(pair_key(left, right));
    }
    left = right;
  }
}

bool TextChunker::are_neighbours(std::string_view left, std::string_view right) const {
  const auto index = ascii_pair(left, right);
  return index ? ascii_pairs_.test(*index) : pairs_.contains(pair_key(left, right));
}

std::string_view TextChunker::first_chunk(std::string_view text, size_t min_bytes,
                                          size_t max_bytes) const {
  if (text.size() <= min_bytes) return text;
  size_t left = min_bytes - 1;
  while (left > 0 && is_utf8_continuation(text[left])) --left;
  size_t right = left + utf8_character_bytes(text[left]);
  while (right < text.size() && right <= max_bytes) {
    const std::string_view right_character = first_character(text.substr(right));
    if (!are_neighbours(text.substr(left, right - left), right_character)) break;
    left = right;
    right += right_character.size();
  }
  return text.substr(0, right);
}

}  // namespace tessera
