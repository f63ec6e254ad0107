// What the program says to the person, all of it on standard error. Control characters in it are
// escaped: names of files and keys of configurations come from strangers.
#pragma once

#include <string_view>

#include "apps/terminal/terminal.h"
#include "engine/engine.h"

namespace tessera {

struct ConsoleOptions {
  bool is_verbose = false;  // says more than warnings
  bool quiet = false;
  bool no_progress = false;
  ColorChoice color = ColorChoice::kAuto;
};

class Console {
 public:
  // Also sets up the log, which the engine writes to.
  explicit Console(const ConsoleOptions& options = {});

  bool shows_progress() const { return !options_.quiet && !options_.no_progress; }
  // As --color asks, for another descriptor than standard error.
  bool uses_color_on(int descriptor) const { return uses_color(descriptor, options_.color); }
  // Standard error is a terminal that understands cursor control.
  bool is_terminal() const { return is_terminal_; }

  // One line; nothing with --quiet.
  void say(std::string_view line) const;
  // One line that was asked for: also with --quiet.
  void tell(std::string_view line) const;
  // One line of lesser weight, dim where colours are.
  void say_dim(std::string_view line) const;

  // "error: ..." and "hint: ...", also with --quiet; with -v where in the source it was thrown.
  void report(const Error& error) const;
  void report(std::string_view error_message) const;

  // Text as it is, for prompts and progress: only what this program wrote itself.
  void write(std::string_view text) const;

 private:
  ConsoleOptions options_;
  bool uses_color_;
  bool is_terminal_;
};

}  // namespace tessera
