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

AnswerPrinter::AnswerPrinter(LineBreaks breaks)
    : wraps_(breaks == LineBreaks::kAtWords && is_terminal(STDOUT_FILENO)) {}

void AnswerPrinter::write(std::string_view text) {
  if (text.empty()) return;
  ends_with_newline_ = text.back() == '\n';
  if (wraps_) {
    print(wrap_.feed(escape_control_characters(text), columns()));
  } else {
    print_generated(text);
  }
}

void AnswerPrinter::finish() {
  if (wraps_) print(wrap_.finish(columns()));
  if (!ends_with_newline_) print("\n");
}

}  // namespace tessera
