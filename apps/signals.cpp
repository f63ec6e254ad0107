#include "apps/signals.h"

#include <signal.h>
#include <unistd.h>

namespace tessera {
namespace {

volatile sig_atomic_t g_pending_signal = 0;

void on_signal(int signal) {
  if (g_pending_signal != 0) _exit(128 + signal);
  g_pending_signal = signal;
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read that waits for a person must return when they press Ctrl-C.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int pending_signal() { return g_pending_signal; }

void clear_interrupt() {
  if (g_pending_signal == SIGINT) g_pending_signal = 0;
}

void throw_if_interrupted() {
  if (const int signal = pending_signal(); signal != 0) throw Interrupted{signal};
}

}  // namespace tessera
