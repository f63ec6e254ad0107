#include "apps/terminal/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/process/signals.h"
#include "apps/terminal/terminal.h"

namespace tessera {

void write_all(int descriptor, std::string_view data, const std::string& name) {
  while (!data.empty()) {
    wait_for_output(descriptor);
    const ssize_t written = write(descriptor, data.data(), data.size());
    if (written >= 0) {
      data.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      throw OutputClosed{};
    } else if (errno != EINTR && errno != EAGAIN) {  // a shared terminal may be non-blocking
      throw Error(concat(name, ": write failed: ", std::strerror(errno)));
    }
  }
}

void print(std::string_view text) {
  try {
    write_all(STDOUT_FILENO, text, "standard output");
  } catch (const Error& error) {
    throw OutputError(error.what(), error.hint(), error.where());
  }
}

void print_generated(std::string_view text, bool is_dim) {
  static const bool shown_to_a_person = is_terminal(STDOUT_FILENO);
  const std::string shown = shown_to_a_person ? escape_control_characters(text) : std::string(text);
  print(is_dim && !text.empty() ? concat(kDim, shown, kPlain) : shown);
}

}  // namespace tessera
