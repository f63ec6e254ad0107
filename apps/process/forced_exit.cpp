#include "apps/process/forced_exit.h"

#include <unistd.h>

#include <atomic>

namespace tessera {
namespace {

std::atomic<void (*)()> g_clean_up = nullptr;

}  // namespace

void before_forced_exit(void (*clean_up)()) { g_clean_up = clean_up; }

TESSERA_IN_HANDLER void force_exit(int code) noexcept {
  if (void (*const clean_up)() = g_clean_up) clean_up();
  _exit(code);
}

}  // namespace tessera
