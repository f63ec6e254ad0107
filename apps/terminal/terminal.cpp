#include "apps/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "apps/process/environment.h"

namespace tessera {

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

bool uses_color(int descriptor, ColorChoice choice) {
  if (choice != ColorChoice::kAuto) return choice == ColorChoice::kAlways;
  return is_terminal(descriptor) && environment("NO_COLOR").empty() &&
         environment("TERM") != "dumb";
}

int terminal_width(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace tessera
