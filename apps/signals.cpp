#include "apps/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace tessera {
namespace {

volatile sig_atomic_t g_pending_signal = 0;

void on_signal(int signal) {
  if (g_pending_signal != 0) _exit(128 + signal);
  g_pending_signal = signal;
}

// The handler runs on a stack of its own. For some shapes oneDNN's AVX-512 matrix product (2.6)
// lets the stack register point into its heap memory while it computes; there the frame that the
// kernel puts down for a handler, 3 KB or more, would overwrite the heap, and about one interrupt
// in seventy ended in an abort. Signals to the process go to its main thread, so it alone needs
// this.
void use_signal_stack() {
  static std::array<std::byte, 64 << 10> memory;
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
}

}  // namespace

void install_signal_handlers() {
  use_signal_stack();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read that waits for a person must return when they press Ctrl-C.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

int pending_signal() { return g_pending_signal; }

void clear_interrupt() {
  if (g_pending_signal == SIGINT) g_pending_signal = 0;
}

void throw_if_interrupted() {
  if (const int signal = pending_signal(); signal != 0) throw Interrupted{signal};
}

}  // namespace tessera
