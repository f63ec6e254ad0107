#include "apps/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "apps/signals.h"
#include "apps/terminal.h"

namespace tessera {
namespace {

constexpr int kHistoryLines = 1000;

// libedit decodes what is typed by the locale; text here is always UTF-8.
void use_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Holds SIGINT and SIGTERM back, so that none is lost between looking at the flag and waiting.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before_);
  }
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

// Waits for a byte of standard input, with the signals of `mask` let through. False at a signal or
// the end of the input.
bool read_byte(const sigset_t& mask, char& byte) {
  while (pending_signal() == 0) {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (ppoll(&input, 1, nullptr, &mask) <= 0) continue;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count >= 0 || (errno != EINTR && errno != EAGAIN)) return count == 1;
  }
  return false;
}

}  // namespace

struct LineEditor::Terminal {
  explicit Terminal(std::string path) : history_path(std::move(path)) {
    use_utf8_locale();
    HistEvent event;
    history(lines, &event, H_SETSIZE, kHistoryLines);
    history(lines, &event, H_SETUNIQUE, 1);
    if (!history_path.empty()) history(lines, &event, H_LOAD, history_path.c_str());
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_PROMPT, &Terminal::current_prompt);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, history, lines);
    el_set(editor, EL_SIGNAL, 0);
    el_set(editor, EL_GETCFN, &Terminal::read_character);
    el_source(editor, nullptr);
  }
  ~Terminal() {
    el_end(editor);
    history_end(lines);
  }

  static Terminal& self(EditLine* editor) {
    Terminal* terminal = nullptr;
    el_get(editor, EL_CLIENTDATA, &terminal);
    return *terminal;
  }

  static const char* current_prompt(EditLine* editor) { return self(editor).prompt.c_str(); }

  // libedit's callback: 1 with a character, 0 at the end of the input or a signal. Bytes that are
  // not UTF-8 are dropped.
  static int read_character(EditLine* editor, wchar_t* character) {
    std::mbstate_t state = {};
    char byte = 0;
    while (read_byte(self(editor).mask_while_waiting, byte)) {
      const size_t length = std::mbrtowc(character, &byte, 1, &state);
      if (length == static_cast<size_t>(-1)) {
        state = {};
      } else if (length != static_cast<size_t>(-2)) {
        return 1;
      }
    }
    return 0;
  }

  History* lines = history_init();
  // The prompt and the echo go to standard error: standard output is for answers only.
  EditLine* editor = el_init("tessera", stdin, stderr, stderr);
  std::string history_path;
  std::string prompt;
  sigset_t mask_while_waiting = {};
};

LineEditor::LineEditor(const std::string& history_path) {
  if (is_terminal(STDIN_FILENO)) terminal_ = std::make_unique<Terminal>(history_path);
}

LineEditor::~LineEditor() = default;

LineEditor::Line LineEditor::read(const std::string& prompt) {
  Line line;
  bool has_line = false;
  if (is_interactive()) {
    const BlockedSignals blocked;
    terminal_->prompt = prompt;
    terminal_->mask_while_waiting = blocked.before();
    el_resize(terminal_->editor);
    int count = 0;
    const char* typed = el_gets(terminal_->editor, &count);
    has_line = typed != nullptr && count > 0;
    if (has_line) line.text.assign(typed, static_cast<size_t>(count));
    if (line.text.ends_with('\n')) line.text.pop_back();
  } else {
    has_line = static_cast<bool>(std::getline(std::cin, line.text));
    if (line.text.ends_with('\r')) line.text.pop_back();
  }
  if (pending_signal() != 0) {
    line.status = Status::kInterrupted;
    line.text.clear();
    if (is_interactive()) el_reset(terminal_->editor);
  } else if (!has_line) {
    line.status = Status::kEndOfInput;
  }
  return line;
}

void LineEditor::remember(const std::string& text) {
  if (!is_interactive()) return;
  HistEvent event;
  history(terminal_->lines, &event, H_ENTER, text.c_str());
  if (!terminal_->history_path.empty()) {
    history(terminal_->lines, &event, H_SAVE, terminal_->history_path.c_str());
  }
}

std::string default_history_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state != '\0') {
    folder = state;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return "";
  }
  folder /= "tessera";
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  return problem ? "" : (folder / "history").string();
}

}  // namespace tessera
