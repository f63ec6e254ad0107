#include "apps/process/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <new>
#include <string_view>

#include "apps/process/exit_codes.h"
#include "apps/process/forced_exit.h"

namespace tessera {

void end_out_of_memory() noexcept {
  // Several threads may come here at once: the first one speaks and ends them all.
  static std::atomic<bool> is_ending = false;
  while (is_ending.exchange(true)) pause();
  // On a terminal a progress bar or half an answer may stand on the line.
  std::string_view message = "\nerror: out of memory\n";
  if (isatty(STDERR_FILENO) != 1) message.remove_prefix(1);
  // There is nobody left to tell when standard error fails.
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, message.data(), message.size());
  force_exit(kExitFatal);
}

void end_when_out_of_memory() { std::set_new_handler(end_out_of_memory); }

}  // namespace tessera
