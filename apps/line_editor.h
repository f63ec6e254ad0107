// Lines from the person: edited and remembered on a terminal, plain elsewhere.
#pragma once

#include <memory>
#include <string>

namespace tessera {

class LineEditor {
 public:
  enum class Status { kLine, kEndOfInput, kInterrupted };
  struct Line {
    Status status = Status::kLine;
    std::string text;  // without the newline
  };

  // Edits with libedit when standard input is a terminal. History is read from and kept in
  // `history_path`; "" keeps none.
  explicit LineEditor(const std::string& history_path);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Whether a person types; otherwise `prompt` is never shown.
  bool is_interactive() const { return terminal_ != nullptr; }

  // kInterrupted: a signal came, and is still pending; what had been typed is gone.
  Line read(const std::string& prompt);

  // Adds a line to the history.
  void remember(const std::string& text);

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;
};

// $XDG_STATE_HOME/tessera/history or ~/.local/state/tessera/history, its folder made; "" when that
// cannot be.
std::string default_history_path();

}  // namespace tessera
