#include "apps/answer/answer_printer.h"

#include <unistd.h>

#include <algorithm>

#include "apps/terminal/output.h"
#include "apps/terminal/terminal.h"

namespace tessera {
namespace {

// Asked for at each word: the window may have changed.
size_t columns() { return static_cast<size_t>(std::max(terminal_width(STDOUT_FILENO), 2)); }

}  // namespace

AnswerPrinter::AnswerPrinter(const AnswerStyle& style, const Console& console)
    : wraps_(style.breaks == LineBreaks::kAtWords && is_terminal(STDOUT_FILENO)),
      shows_thinking_(style.shows_thinking || is_terminal(STDOUT_FILENO)),
      dims_thinking_(console.uses_color_on(STDOUT_FILENO)) {}

void AnswerPrinter::write_thinking(std::string_view text) {
  if (text.empty() || !shows_thinking_) return;
  is_thinking_ = true;
  put(text);
}

void AnswerPrinter::write(std::string_view text) {
  if (text.empty()) return;
  if (is_thinking_) {
    put("\n\n");
    is_thinking_ = false;
  }
  put(text);
}

void AnswerPrinter::finish() {
  if (wraps_) print_part(wrap_.finish(columns()));
  if (!ends_with_newline_) print("\n");
}

void AnswerPrinter::put(std::string_view text) {
  ends_with_newline_ = text.back() == '\n';
  print_part(wraps_ ? wrap_.feed(escape_control_characters(text), columns()) : std::string(text));
}

void AnswerPrinter::print_part(std::string_view text) const {
  print_generated(text, is_thinking_ && dims_thinking_);
}

}  // namespace tessera
