#include "apps/line_editor/edit_buffer.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "apps/terminal/graphemes.h"

namespace tessera {
namespace {

// Everything beyond ASCII counts as letters.
bool is_in_word(char byte) {
  const auto character = static_cast<unsigned char>(byte);
  return character >= 0x80 || std::isalnum(character) != 0 || byte == '_';
}

}  // namespace

void EditBuffer::assign(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void EditBuffer::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void EditBuffer::replace_left(size_t num_bytes, std::string_view text) {
  cursor_ -= num_bytes;
  text_.erase(cursor_, num_bytes);
  insert(text);
}

void EditBuffer::move_left() {
  if (cursor_ > 0) cursor_ = previous_grapheme(text_, cursor_);
}

void EditBuffer::move_right() {
  if (cursor_ < text_.size()) cursor_ = next_grapheme(text_, cursor_);
}

bool EditBuffer::move_up() {
  const size_t start = line_start();
  if (start == 0) return false;
  const size_t wanted = column();
  cursor_ = start - 1;
  move_to_column(line_start(), wanted);
  return true;
}

bool EditBuffer::move_down() {
  const size_t end = line_end();
  if (end == text_.size()) return false;
  move_to_column(end + 1, column());
  return true;
}

void EditBuffer::delete_left() {
  const size_t end = cursor_;
  move_left();
  text_.erase(cursor_, end - cursor_);
}

void EditBuffer::delete_right() {
  if (cursor_ < text_.size()) text_.erase(cursor_, next_grapheme(text_, cursor_) - cursor_);
}

void EditBuffer::delete_to_line_end() {
  // At the end of a line it joins the next one, as Emacs does.
  const size_t end = line_end();
  cut(cursor_, end == cursor_ && end < text_.size() ? end + 1 : end);
}

size_t EditBuffer::line_start() const {
  const size_t newline = before_cursor().rfind('\n');
  return newline == std::string_view::npos ? 0 : newline + 1;
}

size_t EditBuffer::line_end() const { return std::min(text_.find('\n', cursor_), text_.size()); }

size_t EditBuffer::word_left() const {
  size_t at = cursor_;
  while (at > 0 && !is_in_word(text_[at - 1])) --at;
  while (at > 0 && is_in_word(text_[at - 1])) --at;
  return at;
}

size_t EditBuffer::word_right() const {
  size_t at = cursor_;
  while (at < text_.size() && !is_in_word(text_[at])) ++at;
  while (at < text_.size() && is_in_word(text_[at])) ++at;
  return at;
}

size_t EditBuffer::column() const {
  size_t count = 0;
  for (size_t at = line_start(); at < cursor_; at = next_grapheme(text_, at)) ++count;
  return count;
}

void EditBuffer::move_to_column(size_t line_start, size_t column) {
  cursor_ = line_start;
  for (const size_t end = line_end(); column > 0 && cursor_ < end; --column) move_right();
}

void EditBuffer::cut(size_t begin, size_t end) {
  cut_text_ = text_.substr(begin, end - begin);
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

}  // namespace tessera
