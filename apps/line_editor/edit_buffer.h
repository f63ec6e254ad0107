// A message while it is typed: its text, where the cursor is, and what editing does to them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

// The cursor stands between grapheme clusters; moves and deletions are of whole ones.
class EditBuffer {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // a byte offset
  std::string_view before_cursor() const { return std::string_view(text_).substr(0, cursor_); }

  // Replaces everything; the cursor goes to the end.
  void assign(std::string text);
  void insert(std::string_view text);
  // Puts `text` in place of the `num_bytes` before the cursor.
  void replace_left(size_t num_bytes, std::string_view text);

  void move_left();
  void move_right();
  void move_word_left() { cursor_ = word_left(); }
  void move_word_right() { cursor_ = word_right(); }
  void move_to_line_start() { cursor_ = line_start(); }
  void move_to_line_end() { cursor_ = line_end(); }
  // To the line above or below, in the same column where it has one. False when there is none.
  bool move_up();
  bool move_down();

  void delete_left();
  void delete_right();
  // These four keep what they delete for yank().
  void delete_word_left() { cut(word_left(), cursor_); }
  void delete_word_right() { cut(cursor_, word_right()); }
  void delete_to_line_start() { cut(line_start(), cursor_); }
  void delete_to_line_end();
  void yank() { insert(cut_text_); }

 private:
  size_t line_start() const;
  size_t line_end() const;
  size_t word_left() const;
  size_t word_right() const;
  void move_to_column(size_t line_start, size_t column);
  size_t column() const;  // in grapheme clusters
  void cut(size_t begin, size_t end);

  std::string text_;
  size_t cursor_ = 0;
  std::string cut_text_;
};

}  // namespace tessera
