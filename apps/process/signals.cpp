#include "apps/process/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "apps/process/exit_codes.h"
#include "apps/process/forced_exit.h"

namespace tessera {
namespace {

volatile sig_atomic_t g_pending_signal = 0;

pthread_t g_main_thread = {};

TESSERA_IN_HANDLER void on_signal(int signal) {
  if (pass_to_main_thread(signal)) return;
  if (g_pending_signal != 0) force_exit(exit_code_of(signal));
  g_pending_signal = signal;
}

// The handler runs on a stack of its own. For some shapes oneDNN's AVX-512 matrix product (2.6)
// lets the stack register point into its heap memory while it computes; there the frame that the
// kernel puts down for a handler, 3 KB or more, would overwrite the heap, and about one interrupt
// in seventy ended in an abort. Signals to the process nearly always go to its main thread, so it
// alone has this.
void use_signal_stack() {
  static std::array<std::byte, 64 << 10> memory;
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
}

// Waits for a while. A signal that comes just before poll() does not end it, so none lasts long.
bool is_ready(int descriptor, short events) {
  constexpr int kMilliseconds = 100;
  pollfd state = {descriptor, events, 0};
  const int num_ready = poll(&state, 1, kMilliseconds);
  return num_ready > 0 || (num_ready < 0 && errno != EINTR);
}

}  // namespace

void install_signal_handlers() {
  g_main_thread = pthread_self();
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

bool pass_to_main_thread(int signal) {
  if (pthread_equal(pthread_self(), g_main_thread) != 0) return false;
  pthread_kill(g_main_thread, signal);
  return true;
}

int pending_signal() { return g_pending_signal; }

void clear_interrupt() {
  if (g_pending_signal == SIGINT) g_pending_signal = 0;
}

void throw_if_interrupted() {
  if (const int signal = pending_signal(); signal != 0) throw Interrupted{signal};
}

void wait_for_input(int descriptor) {
  do {
    throw_if_interrupted();
  } while (!is_ready(descriptor, POLLIN));
}

void wait_for_output(int descriptor) {
  while (!is_ready(descriptor, POLLOUT)) throw_if_interrupted();
}

}  // namespace tessera
