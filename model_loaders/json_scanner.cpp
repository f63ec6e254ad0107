#include "model_loaders/json_scanner.h"

#include <charconv>
#include <cstring>

#include "model_loaders/utf8_character.h"

namespace tessera {
namespace {

bool is_white_space(char character) {
  return character == ' ' || character == '\n' || character == '\t' || character == '\r';
}

bool is_high_surrogate(uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low_surrogate(uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

void write_utf8(uint32_t code, char*& to) {
  const auto put = [&](uint32_t byte) { *to++ = static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace

JsonScanner::JsonScanner(std::string& text, JsonSource source)
    : begin_(text.data()),
      at_(text.data()),
      end_(text.data() + text.size()),
      source_(std::move(source)) {}

void JsonScanner::fail() const { throw invalid_json(source_, offset_bytes()); }

void JsonScanner::skip_white_space() {
  while (at_ < end_ && is_white_space(*at_)) ++at_;
}

bool JsonScanner::is_next(char character) {
  skip_white_space();
  return at_ < end_ && *at_ == character;
}

bool JsonScanner::consume(char character) {
  const bool found = is_next(character);
  at_ += found ? 1 : 0;
  return found;
}

void JsonScanner::expect(char character) {
  if (!consume(character)) fail();
}

void JsonScanner::expect_end() {
  skip_white_space();
  if (at_ != end_) fail();
}

int32_t JsonScanner::integer() {
  skip_white_space();
  int32_t value = 0;
  const auto result = std::from_chars(at_, end_, value);
  if (result.ec != std::errc() || *at_ == '-') fail();
  at_ += result.ptr - at_;
  return value;
}

uint32_t JsonScanner::hexadecimal() {
  uint32_t value = 0;
  if (end_ - at_ < 4) fail();
  const auto result = std::from_chars(at_, at_ + 4, value, 16);
  if (result.ec != std::errc() || result.ptr != at_ + 4) fail();
  at_ += 4;
  return value;
}

void JsonScanner::unescape(char*& to) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kCharacters = "\"\\/\b\f\n\r\t";
  if (at_ == end_) fail();
  if (*at_ != 'u') {
    const size_t index = kEscapes.find(*at_);
    if (index == std::string_view::npos) fail();
    ++at_;
    *to++ = kCharacters[index];
    return;
  }
  ++at_;
  uint32_t code = hexadecimal();
  if (is_low_surrogate(code)) fail();
  if (is_high_surrogate(code)) {
    if (end_ - at_ < 2 || std::memcmp(at_, "\\u", 2) != 0) fail();
    at_ += 2;
    const uint32_t low = hexadecimal();
    if (!is_low_surrogate(low)) fail();
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  write_utf8(code, to);  // at most as many bytes as the escape has
}

size_t JsonScanner::character_bytes() const {
  const auto is_continuation = [this](int index) {
    return (static_cast<unsigned char>(at_[index]) & 0xC0) == 0x80;
  };
  // Nearly all: two bytes, and three where any continuation may follow the first.
  const auto first = static_cast<unsigned char>(*at_);
  if (end_ - at_ >= 3) {
    if (first >= 0xC2 && first < 0xE0 && is_continuation(1)) return 2;
    const bool takes_any = first > 0xE0 && first < 0xF0 && first != 0xED;
    if (takes_any && is_continuation(1) && is_continuation(2)) return 3;
  }
  const Utf8Character character =
      first_utf8_character(std::string_view(at_, static_cast<size_t>(end_ - at_)));
  if (character.kind != Utf8Character::Kind::kCharacter) fail();
  return character.num_bytes;
}

std::string_view JsonScanner::string() {
  expect('"');
  char* const begin = at_;
  char* to = at_;
  while (at_ < end_ && *at_ != '"') {
    const auto byte = static_cast<unsigned char>(*at_);
    if (byte == '\\') {
      ++at_;
      unescape(to);
    } else if (byte < 0x80) {
      if (byte < 0x20) fail();
      *to++ = *at_++;
    } else {
      for (size_t count = character_bytes(); count > 0; --count) *to++ = *at_++;
    }
  }
  expect('"');
  return {begin, static_cast<size_t>(to - begin)};
}

void JsonScanner::skip_string() {
  for (++at_; at_ < end_ && *at_ != '"'; ++at_) {
    if (*at_ == '\\' && ++at_ == end_) fail();
  }
  if (at_ == end_) fail();
  ++at_;
}

std::string_view JsonScanner::raw_value() {
  skip_white_space();
  const char* const begin = at_;
  size_t nesting = 0;
  while (at_ < end_) {
    const char character = *at_;
    if (character == '"') {
      skip_string();
      if (nesting == 0) break;
      continue;
    }
    const bool closes = character == '}' || character == ']';
    // A value without brackets or quotes ends before what follows it.
    const bool follows =
        closes || character == ',' || character == ':' || is_white_space(character);
    if (nesting == 0 && follows) break;
    if (character == '{' || character == '[') ++nesting;
    ++at_;
    if (closes && --nesting == 0) break;
  }
  if (at_ == begin || nesting > 0) fail();
  return {begin, static_cast<size_t>(at_ - begin)};
}

}  // namespace tessera
