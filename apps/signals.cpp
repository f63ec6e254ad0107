#include "apps/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace tessera {
namespace {

volatile sig_atomic_t g_pending_signal = 0;
std::atomic<void (*)()> g_clean_up = nullptr;

pthread_t g_main_thread = {};

void on_signal(int signal) {
  if (pass_to_main_thread(signal)) return;
  if (g_pending_signal != 0) {
    if (void (*const clean_up)() = g_clean_up) clean_up();
    _exit(128 + signal);
  }
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
}

bool pass_to_main_thread(int signal) {
  if (pthread_equal(pthread_self(), g_main_thread) != 0) return false;
  pthread_kill(g_main_thread, signal);
  return true;
}

void before_forced_exit(void (*clean_up)()) { g_clean_up = clean_up; }

int pending_signal() { return g_pending_signal; }

void clear_interrupt() {
  if (g_pending_signal == SIGINT) g_pending_signal = 0;
}

void throw_if_interrupted() {
  if (const int signal = pending_signal(); signal != 0) throw Interrupted{signal};
}

}  // namespace tessera
