#include "apps/line_editor/terminal_editor.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/text/utf8.h"

namespace tessera {
namespace {

struct Edit {
  Key key;
  void (EditBuffer::*apply)();
};

// The keys that change nothing but the buffer.
constexpr std::array kEdits = {
    Edit{Key::kLeft, &EditBuffer::move_left},
    Edit{Key::kRight, &EditBuffer::move_right},
    Edit{Key::kLineStart, &EditBuffer::move_to_line_start},
    Edit{Key::kLineEnd, &EditBuffer::move_to_line_end},
    Edit{Key::kWordLeft, &EditBuffer::move_word_left},
    Edit{Key::kWordRight, &EditBuffer::move_word_right},
    Edit{Key::kDeleteLeft, &EditBuffer::delete_left},
    Edit{Key::kDeleteRight, &EditBuffer::delete_right},
    Edit{Key::kDeleteRightOrEnd, &EditBuffer::delete_right},
    Edit{Key::kDeleteWordLeft, &EditBuffer::delete_word_left},
    Edit{Key::kDeleteWordRight, &EditBuffer::delete_word_right},
    Edit{Key::kDeleteToLineStart, &EditBuffer::delete_to_line_start},
    Edit{Key::kDeleteToLineEnd, &EditBuffer::delete_to_line_end},
    Edit{Key::kYank, &EditBuffer::yank},
};

std::string common_prefix(const std::vector<std::string>& texts) {
  std::string prefix = texts.front();
  for (const std::string& text : texts) {
    const auto differ = std::mismatch(prefix.begin(), prefix.end(), text.begin(), text.end());
    prefix.erase(differ.first, prefix.end());
  }
  prefix.resize(complete_utf8_prefix(prefix));
  return prefix;
}

}  // namespace

TerminalEditor::TerminalEditor(InputBytes& bytes, const std::string& history_path,
                               Completer completer, const Console& console)
    : bytes_(bytes),
      console_(console),
      completer_(std::move(completer)),
      history_(history_path),
      view_(console) {}

InputLine TerminalEditor::read(const std::string& prompt) {
  buffer_.assign("");
  RawTerminal::keep_at_interrupt(false);
  RawTerminal::ensure_raw();
  RawTerminal::take_continued();  // during an answer: the prompt has yet to be shown
  view_.begin(prompt);
  is_shown_ = true;
  for (;;) {
    const KeyPress press = read_key(bytes_);
    const bool ends = press.key == Key::kDeleteRightOrEnd && buffer_.text().empty();
    if (press.key == Key::kEnter) return finish(InputLine::Status::kLine);
    if (press.key == Key::kEndOfInput || ends) return finish(InputLine::Status::kEndOfInput);
    if (press.key == Key::kSignal) return finish(InputLine::Status::kInterrupted);
    apply(press);
    is_shown_ = false;
    // A drawing takes time by the length of the message. Keys that are there already, a paste
    // without marks for one, are shown together.
    if (!bytes_.has_more()) show();
  }
}

InputLine TerminalEditor::finish(InputLine::Status status) {
  if (status == InputLine::Status::kLine) RawTerminal::keep_at_interrupt(true);
  show();
  view_.finish();
  if (status == InputLine::Status::kInterrupted) history_.add_draft(buffer_.text());
  history_.stop_browsing();
  if (status == InputLine::Status::kLine) return {status, buffer_.text()};
  bytes_.drop();
  return {status, ""};
}

void TerminalEditor::apply(const KeyPress& press) {
  if (press.key == Key::kUp) return recall_previous();
  if (press.key == Key::kDown) return recall_next();
  if (press.key == Key::kTerminalChange) return follow_terminal();
  history_.stop_browsing();
  if (press.key == Key::kText || press.key == Key::kPaste) buffer_.insert(press.text);
  if (press.key == Key::kNewline) buffer_.insert("\n");
  if (press.key == Key::kTab) complete();
  if (press.key == Key::kClearScreen) view_.clear_screen();
  for (const Edit& edit : kEdits) {
    if (edit.key == press.key) (buffer_.*edit.apply)();
  }
}

// Up goes through the lines of a message that is being edited, and from its first line, or from a
// message just recalled, to the one before.
void TerminalEditor::recall_previous() {
  if (!history_.is_browsing() && buffer_.move_up()) return;
  if (std::optional<std::string> entry = history_.previous(buffer_.text())) {
    buffer_.assign(std::move(*entry));
  }
}

void TerminalEditor::recall_next() {
  if (!history_.is_browsing() && buffer_.move_down()) return;
  if (std::optional<std::string> entry = history_.next()) buffer_.assign(std::move(*entry));
}

// Inserts what all candidates begin with; where that is nothing new it lists them.
void TerminalEditor::complete() {
  const Completions found = completer_(buffer_.before_cursor());
  if (found.candidates.empty()) return;
  const std::string prefix = common_prefix(found.candidates);
  if (prefix.size() > found.replaced) return buffer_.replace_left(found.replaced, prefix);
  if (found.candidates.size() == 1) return;
  std::string list;
  for (const std::string& candidate : found.candidates) list += candidate + "  ";
  show();
  view_.finish();
  console_.write(escape_control_characters(list) + '\n');
  view_.forget();
}

void TerminalEditor::follow_terminal() {
  RawTerminal::take_resized();  // every drawing looks at the size
  RawTerminal::ensure_raw();
  // A shell has begun a row of its own, but not every program that stops others is one.
  if (RawTerminal::take_continued()) view_.forget_and_erase();
}

void TerminalEditor::show() {
  if (!is_shown_) view_.draw(buffer_.text(), buffer_.cursor());
  is_shown_ = true;
}

}  // namespace tessera
