// Breaks lines of text between words while it is still being written.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// Follows the columns of a terminal. The word in progress is held back, for it may belong to the
// next line; blocks of code between lines that begin with ``` or ~~~ stay as they are.
class WordWrap {
 public:
  // What can be written of `text`, whole characters of UTF-8 without control characters other than
  // newline and tab, on a terminal of `width` columns.
  std::string feed(std::string_view text, size_t width);

  // The rest.
  std::string finish(size_t width);

 private:
  void put_space(std::string_view space);
  void put_character(std::string_view character, size_t width);
  bool begins_word(std::string_view character) const;
  void end_word(size_t width);
  void end_line(size_t width);

  std::string written_;    // since the last call
  std::string spaces_;     // held back before word_
  std::string word_;       // held back
  size_t word_width_ = 0;  // columns
  size_t column_ = 0;      // where written text ends
  bool is_line_start_ = true;
  bool is_word_begun_ = false;  // word_ goes on a word that is longer than a line
  bool is_code_ = false;
};

}  // namespace tessera
