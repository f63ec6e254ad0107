// The prompt and the message being typed, on the screen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/terminal/console.h"

namespace tessera {

// Text as rows of a terminal.
struct PromptLayout {
  struct Row {
    std::string text;
    bool is_continued = false;  // the terminal itself goes on in the next row, which is full here
  };
  std::vector<Row> rows;
  size_t cursor_row = 0, cursor_column = 0;
};

// `prompt` and `text` on a terminal of `width` columns; the cursor stands before byte `cursor` of
// `text`. Lines after the first are indented as the prompt does the first.
PromptLayout lay_out_prompt(std::string_view prompt, std::string_view text, size_t cursor,
                            size_t width);

// Draws on standard error, and never more rows than the screen has.
class PromptView {
 public:
  explicit PromptView(const Console& console) : console_(console) {}

  // Shows `prompt` in the cursor's row, which is empty.
  void begin(std::string prompt);
  // Shows `text` in place of what was shown before.
  void draw(const std::string& text, size_t cursor);
  // Shows all of it, so that it can be read above what follows, and goes to the row below.
  void finish();

  // The cursor's row is empty again: other text has been written since.
  void forget() { is_drawn_ = false; }
  // The same of a row that nobody may have left since the text was shown in it.
  void forget_and_erase();
  void clear_screen();

 private:
  // What `text` has more than the text shown, if writing that is all there is to do, else "".
  std::string_view addition(std::string_view text, size_t cursor, size_t width) const;
  // What clears all that is shown and leaves the cursor where it began.
  std::string erasure(size_t width) const;
  // What shows the layout, or `max_rows` of it, and places the cursor.
  std::string rows_around_cursor(size_t max_rows);

  const Console& console_;
  std::string prompt_;
  // What is shown:
  bool is_drawn_ = false;
  std::string text_;
  size_t cursor_ = 0;
  size_t width_ = 0;
  PromptLayout layout_;
  size_t first_row_ = 0;  // of the layout, where it has more rows than the screen
};

}  // namespace tessera
