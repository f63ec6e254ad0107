// Lets a person type a message on a terminal, with the keys they know from their shell.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/line_editor/edit_buffer.h"
#include "apps/line_editor/input_bytes.h"
#include "apps/line_editor/input_history.h"
#include "apps/line_editor/keys.h"
#include "apps/line_editor/prompt_view.h"
#include "apps/line_editor/raw_terminal.h"
#include "apps/terminal/console.h"

namespace tessera {

// What a person has entered.
struct InputLine {
  enum class Status : uint8_t { kLine, kEndOfInput, kInterrupted };
  Status status = Status::kLine;
  std::string text;          // without the final newline; a paste can hold several lines
  bool is_too_long = false;  // text is only its beginning and its last kKeptEndBytes
};
inline constexpr size_t kKeptEndBytes = 16;

// The longest message that is read from a pipe.
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

// What Tab can put in place of the `replaced` bytes before the cursor.
struct Completions {
  size_t replaced = 0;
  std::vector<std::string> candidates;
};
using Completer = std::function<Completions(std::string_view before_cursor)>;

// libedit, Debian's editor under a licence like ours, counts a column for every combining mark, so
// that its screen goes wrong, and takes the lines of a paste one by one. Hence our own.
class TerminalEditor {
 public:
  // `bytes` and `console` must outlive the editor. `history_path` is for InputHistory.
  TerminalEditor(InputBytes& bytes, const std::string& history_path, Completer completer,
                 const Console& console);

  // kInterrupted: a signal is pending; what had been typed is gone.
  InputLine read(const std::string& prompt);
  void remember(const std::string& text) { history_.add(text); }

 private:
  InputLine finish(InputLine::Status status);
  void apply(const KeyPress& press);
  void recall_previous();
  void recall_next();
  void complete();
  void follow_terminal();
  // Shows the message as it stands now.
  void show();

  InputBytes& bytes_;
  const Console& console_;
  Completer completer_;
  InputHistory history_;
  EditBuffer buffer_;
  PromptView view_;
  bool is_shown_ = false;  // buffer_, as it stands now
  RawTerminal terminal_;
};

}  // namespace tessera
