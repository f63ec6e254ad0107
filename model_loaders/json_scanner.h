// Reads JSON front to back without building a document: for lists of hundreds of thousands of
// values, which as documents take many times the time and memory of their text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model_loaders/json_text.h"

namespace tessera {

// Every function skips white space first and throws Error with the byte where the text is not what
// the function reads. Strings are unescaped where they stand, so that views of them last as long
// as the text.
class JsonScanner {
 public:
  // `text` changes where strings have escapes. It outlives the scanner.
  JsonScanner(std::string& text, JsonSource source);

  // Whether `character` comes next; then it is read.
  bool consume(char character);
  void expect(char character);
  // Whether `character` comes next, which stays.
  bool is_next(char character);

  // A string, which must be UTF-8.
  std::string_view string();
  // An integer from 0 to 2^31 - 1.
  int32_t integer();
  // The text of one value of any kind, of which only brackets and quotes are checked. It is not
  // unescaped.
  std::string_view raw_value();
  // Nothing but white space is left.
  void expect_end();

  // Bytes before what is read next.
  size_t offset_bytes() const { return static_cast<size_t>(at_ - begin_); }

 private:
  void skip_white_space();
  [[noreturn]] void fail() const;
  // How many bytes the next character has, which is not ASCII.
  size_t character_bytes() const;
  // Reads four hexadecimal digits.
  uint32_t hexadecimal();
  // Reads what follows a backslash and writes the character to `to`, which it moves on.
  void unescape(char*& to);
  void skip_string();

  char* begin_;
  char* at_;
  char* end_;
  JsonSource source_;
};

}  // namespace tessera
