#include "apps/line_editor/input_bytes.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "apps/line_editor/raw_terminal.h"
#include "apps/process/signals.h"
#include "apps/terminal/terminal.h"
#include "engine/engine.h"

namespace tessera {
namespace {

// Holds signals back, so that none is lost between looking at their flags and waiting.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGWINCH, SIGTSTP, SIGCONT}) {
      sigaddset(&signals, signal);
    }
    sigprocmask(SIG_BLOCK, &signals, &before_);
  }
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

}  // namespace

InputBytes::Event InputBytes::next(char& byte, int timeout_milliseconds, bool sees_changes) {
  while (begin_ == end_) {
    const Event event = fill(timeout_milliseconds, sees_changes);
    if (event != Event::kByte) return event;
  }
  byte = block_[begin_++];
  return Event::kByte;
}

bool InputBytes::has_more() const {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return begin_ != end_ || poll(&input, 1, /*timeout=*/0) > 0;
}

InputBytes::Event InputBytes::fill(int timeout_milliseconds, bool sees_changes) {
  const BlockedSignals blocked;
  if (pending_signal() != 0) return Event::kSignal;
  if (sees_changes && RawTerminal::has_changed()) return Event::kTerminalChange;
  const timespec timeout = {.tv_sec = timeout_milliseconds / 1000,
                            .tv_nsec = timeout_milliseconds % 1000 * 1'000'000L};
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  const int count =
      ppoll(&input, 1, timeout_milliseconds < 0 ? nullptr : &timeout, &blocked.before());
  if (count == 0) return Event::kTimeout;
  if (count < 0) return Event::kByte;
  const ssize_t length = read(STDIN_FILENO, block_.data(), block_.size());
  if (length < 0 && (errno == EINTR || errno == EAGAIN)) return Event::kByte;
  // A terminal that is gone says EIO.
  CHECK(length >= 0 || (errno == EIO && is_terminal(STDIN_FILENO)),
        "standard input: ", std::strerror(errno));
  if (length <= 0) return Event::kEnd;
  begin_ = 0;
  end_ = static_cast<size_t>(length);
  return Event::kByte;
}

}  // namespace tessera
