#include "apps/line_editor/line_editor.h"

#include <unistd.h>

#include <utility>

#include "apps/files/text_input.h"
#include "apps/terminal/terminal.h"

namespace tessera {

LineEditor::LineEditor(const std::string& history_path, Completer completer, const Console& console)
    : console_(console), is_interactive_(is_terminal(STDIN_FILENO)) {
  if (is_interactive_ && console.is_terminal()) {
    editor_ = std::make_unique<TerminalEditor>(bytes_, history_path, std::move(completer), console);
  }
}

InputLine LineEditor::read(const std::string& prompt) {
  return editor_ ? editor_->read(prompt) : read_plain(prompt);
}

InputLine LineEditor::read_plain(const std::string& prompt) {
  if (is_interactive_) console_.write(prompt);
  std::string text;
  bool is_too_long = false;
  InputBytes::Event event;
  for (char byte = 0; (event = bytes_.next(byte)) == InputBytes::Event::kByte && byte != '\n';) {
    if (text.size() == kMaxMessageBytes) {
      is_too_long = true;
      text.erase(text.size() - kKeptEndBytes, 1);
    }
    text += byte;
  }
  if (text.ends_with('\r')) text.pop_back();
  if (std::exchange(is_first_line_, false)) text.erase(0, byte_order_mark_size(text));
  const bool is_line = event == InputBytes::Event::kByte || !text.empty();
  if (event != InputBytes::Event::kSignal && is_line) {
    return {InputLine::Status::kLine, std::move(text), is_too_long};
  }
  if (is_interactive_) console_.write("\n");
  bytes_.drop();
  const bool is_end = event != InputBytes::Event::kSignal;
  return {is_end ? InputLine::Status::kEndOfInput : InputLine::Status::kInterrupted, ""};
}

void LineEditor::remember(const std::string& text) {
  if (editor_) editor_->remember(text);
}

}  // namespace tessera
