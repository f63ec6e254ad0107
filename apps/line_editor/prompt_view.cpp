#include "apps/line_editor/prompt_view.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "apps/terminal/graphemes.h"
#include "apps/terminal/terminal.h"
#include "engine/text/utf8.h"

namespace tessera {
namespace {

constexpr size_t kTabColumns = 4;

// Fills rows from left to right as a terminal does.
class RowWriter {
 public:
  explicit RowWriter(size_t width) : width_(width) {}

  // A cluster that is too wide for the row goes on in the next one: terminals break between
  // characters.
  void put(std::string_view character) {
    const auto columns = static_cast<size_t>(display_width(character));
    make_room(columns);
    rows_.back().text += character;
    column_ += columns;
  }
  void end_line() {
    rows_.emplace_back();
    column_ = 0;
  }
  // Goes on in the next row when `columns` more do not fit in this one.
  void make_room(size_t columns) {
    if (column_ + columns <= width_) return;
    rows_.back().is_continued = true;
    end_line();
  }

  void end_full_row() {
    if (column_ == width_) end_line();
  }

  std::vector<PromptLayout::Row>& rows() { return rows_; }
  size_t row() const { return rows_.size() - 1; }
  size_t column() const { return column_; }

 private:
  size_t width_;
  size_t column_ = 0;
  std::vector<PromptLayout::Row> rows_ = std::vector<PromptLayout::Row>(1);
};

void put_all(RowWriter& writer, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, utf8_character_bytes(text[at]));
    writer.put(character);
    at += character.size();
  }
}

size_t screen_rows() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0) return size.ws_row;
  return 24;
}

size_t screen_columns() {
  // A wide character must have room in a row.
  return static_cast<size_t>(std::max(terminal_width(STDERR_FILENO), 2));
}

std::string sequence(size_t count, char final) {
  return count == 0 ? "" : "\x1b[" + std::to_string(count) + final;
}

}  // namespace

PromptLayout lay_out_prompt(std::string_view prompt, std::string_view text, size_t cursor,
                            size_t width) {
  PromptLayout layout;
  RowWriter writer(width);
  const std::string indent(static_cast<size_t>(display_width(prompt)), ' ');
  put_all(writer, prompt);
  for (size_t at = 0;;) {
    const bool is_line_end = at == text.size() || text[at] == '\n';
    if (at == cursor) {
      // The cursor takes a column too, and a full row is only left for a character to come.
      is_line_end ? writer.end_full_row() : writer.make_room(1);
      layout.cursor_row = writer.row();
      layout.cursor_column = writer.column();
    }
    if (at == text.size()) break;
    const size_t end = next_grapheme(text, at);
    const std::string_view cluster = text.substr(at, end - at);
    if (cluster == "\n") {
      writer.end_line();
      put_all(writer, indent);
    } else {
      put_all(writer,
              cluster == "\t" ? std::string(kTabColumns, ' ') : escape_control_characters(cluster));
    }
    at = end;
  }
  layout.rows = std::move(writer.rows());
  return layout;
}

void PromptView::begin(std::string prompt) {
  prompt_ = std::move(prompt);
  is_drawn_ = false;
  draw("", 0);
}

void PromptView::draw(const std::string& text, size_t cursor) {
  const size_t width = screen_columns();
  const std::string erased = is_drawn_ ? erasure(width) : "";
  const std::string_view added = addition(text, cursor, width);
  layout_ = lay_out_prompt(prompt_, text, cursor, width);
  console_.write(added.empty() ? erased + rows_around_cursor(screen_rows()) : std::string(added));
  text_ = text;
  cursor_ = cursor;
  width_ = width;
  is_drawn_ = true;
}

void PromptView::finish() {
  const size_t width = screen_columns();
  const std::string erased = is_drawn_ ? erasure(width) : "";
  const bool shows_all = layout_.rows.size() <= screen_rows();
  layout_ = lay_out_prompt(prompt_, text_, text_.size(), width);
  const bool stays = is_drawn_ && width == width_ && shows_all && cursor_ == text_.size();
  console_.write((stays ? "" : erased + rows_around_cursor(layout_.rows.size())) + '\n');
}

void PromptView::forget_and_erase() {
  console_.write("\r\x1b[J");
  forget();
}

void PromptView::clear_screen() {
  console_.write("\x1b[H\x1b[2J");
  is_drawn_ = false;
}

std::string_view PromptView::addition(std::string_view text, size_t cursor, size_t width) const {
  const bool is_at_end = cursor_ == text_.size() && cursor == text.size();
  if (!is_drawn_ || width != width_ || !is_at_end || !text.starts_with(text_)) return "";
  const std::string_view added = text.substr(text_.size());
  const bool is_plain = added.find_first_of("\n\t") == std::string_view::npos &&
                        escape_control_characters(added) == added;
  const bool fits = layout_.cursor_column + static_cast<size_t>(display_width(added)) < width;
  return is_plain && fits ? added : "";
}

std::string PromptView::erasure(size_t width) const {
  // Most terminals lay continued rows out again when their window changes; so does this.
  const size_t cursor_row = lay_out_prompt(prompt_, text_, cursor_, width).cursor_row;
  const size_t above = cursor_row - std::min(cursor_row, first_row_);
  return sequence(std::min(above, screen_rows() - 1), 'A') + "\r\x1b[J";
}

std::string PromptView::rows_around_cursor(size_t max_rows) {
  const size_t cursor_row = layout_.cursor_row;
  const size_t num_rows = std::min(layout_.rows.size(), max_rows);
  const size_t lowest = cursor_row - std::min(cursor_row, num_rows - 1);
  first_row_ = std::clamp(first_row_, lowest, std::min(cursor_row, layout_.rows.size() - num_rows));
  const size_t last = first_row_ + num_rows - 1;
  std::string text;
  for (size_t row = first_row_; row <= last; ++row) {
    text += layout_.rows[row].text;
    if (row < last && !layout_.rows[row].is_continued) text += '\n';
  }
  return text + sequence(last - cursor_row, 'A') + '\r' + sequence(layout_.cursor_column, 'C');
}

}  // namespace tessera
