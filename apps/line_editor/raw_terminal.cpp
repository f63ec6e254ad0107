#include "apps/line_editor/raw_terminal.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "apps/process/forced_exit.h"
#include "apps/process/signals.h"

namespace tessera {
namespace {

// Asks the terminal to put ESC[200~ and ESC[201~ around what is pasted ("bracketed paste").
constexpr std::string_view kMarkPastes = "\x1b[?2004h";
constexpr std::string_view kPlainPastes = "\x1b[?2004l";

volatile sig_atomic_t g_is_raw = 0;
volatile sig_atomic_t g_was_resized = 0;
volatile sig_atomic_t g_was_continued = 0;
termios g_original = {};
termios g_raw = {};

// The functions below run in signal handlers too, so they only call what may be called there.

void put(std::string_view sequence) {
  // A terminal that cannot be written has nobody in front of it.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, sequence.data(), sequence.size());
}

bool make_raw() {
  if (tcsetattr(STDIN_FILENO, TCSANOW, &g_raw) != 0) return false;
  put(kMarkPastes);
  g_is_raw = 1;
  return true;
}

void leave_raw_mode() {
  if (g_is_raw == 0) return;
  g_is_raw = 0;
  put(kPlainPastes);
  tcsetattr(STDIN_FILENO, TCSANOW, &g_original);
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// In the background the terminal is the shell's: the next ensure_raw() waits for it.
void return_to_raw_mode() {
  if (tcgetpgrp(STDIN_FILENO) == getpgrp()) make_raw();
}

void on_continue(int signal) {
  if (pass_to_main_thread(signal)) return;
  const int saved_errno = errno;
  return_to_raw_mode();
  g_was_continued = 1;
  errno = saved_errno;
}

// Ctrl-Z: the shell gets its terminal back before the process stops, as it would without a handler.
void on_stop(int signal) {
  if (pass_to_main_thread(signal)) return;
  const int saved_errno = errno;
  leave_raw_mode();
  set_handler(signal, SIG_DFL);
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, signal);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  set_handler(signal, on_stop);
  // The kernel did not stop it where no shell could wake it again; nothing was continued then.
  return_to_raw_mode();
  errno = saved_errno;
}

// The terminal may outlive whoever hangs up: a script that goes on, or the shell.
void on_hang_up(int signal) {
  if (pass_to_main_thread(signal)) return;
  leave_raw_mode();
  set_handler(signal, SIG_DFL);
  raise(signal);  // held back until this handler returns, and then it ends the process
}

// Under nohup it is ignored, and stays so.
void handle_hang_up() {
  struct sigaction found = {};
  sigaction(SIGHUP, nullptr, &found);
  if (found.sa_handler == SIG_DFL) set_handler(SIGHUP, on_hang_up);
}

void on_resize(int signal) {
  if (!pass_to_main_thread(signal)) g_was_resized = 1;
}

termios raw_mode(termios mode) {
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR | ISTRIP);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  // A core dump would leave the terminal raw.
  mode.c_cc[VQUIT] = _POSIX_VDISABLE;
  return mode;
}

bool take(volatile sig_atomic_t& flag) {
  const bool was_set = flag != 0;
  flag = 0;
  return was_set;
}

}  // namespace

RawTerminal::RawTerminal() {
  tcgetattr(STDIN_FILENO, &g_original);
  g_raw = raw_mode(g_original);
  set_handler(SIGTSTP, on_stop);
  set_handler(SIGCONT, on_continue);
  set_handler(SIGWINCH, on_resize);
  handle_hang_up();
  before_forced_exit(leave_raw_mode);
  ensure_raw();
}

RawTerminal::~RawTerminal() {
  set_handler(SIGCONT, SIG_DFL);
  set_handler(SIGTSTP, SIG_DFL);
  set_handler(SIGWINCH, SIG_DFL);
  leave_raw_mode();
  before_forced_exit(nullptr);
}

// In the background tcsetattr stops the process until the shell gives it the terminal (SIGTTOU).
// Then the handler of SIGCONT makes it raw, or a signal that ends the process has come.
void RawTerminal::ensure_raw() {
  while (g_is_raw == 0 && pending_signal() == 0 && !make_raw() && errno == EINTR) {
  }
}

void RawTerminal::keep_at_interrupt(bool keeps) {
  g_raw.c_lflag &= ~static_cast<tcflag_t>(NOFLSH);
  if (keeps) g_raw.c_lflag |= NOFLSH;
  if (g_is_raw != 0) tcsetattr(STDIN_FILENO, TCSANOW, &g_raw);
}

bool RawTerminal::take_resized() { return take(g_was_resized); }
bool RawTerminal::take_continued() { return take(g_was_continued); }
bool RawTerminal::has_changed() { return g_was_resized != 0 || g_was_continued != 0; }

}  // namespace tessera
