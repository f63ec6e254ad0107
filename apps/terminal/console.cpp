#include "apps/terminal/console.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "apps/process/environment.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"

namespace tessera {
namespace {

constexpr std::string_view kRed = "\x1b[31m";

// The message of a log line, escaped.
class EscapedMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& destination) override {
    const std::string text =
        escape_control_characters({message.payload.data(), message.payload.size()});
    destination.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedMessage>();
  }
};

void set_up_log(const ConsoleOptions& options, bool uses_color, bool is_terminal) {
  const auto mode = uses_color ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto log = std::make_shared<spdlog::logger>(
      "", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
  log->set_level(options.quiet        ? spdlog::level::err
                 : options.is_verbose ? spdlog::level::info
                                      : spdlog::level::warn);
  // On a terminal a progress bar may stand on the line: wipe it first.
  auto layout = std::make_unique<spdlog::pattern_formatter>();
  layout->add_flag<EscapedMessage>('*');
  layout->set_pattern(is_terminal ? "\r\x1b[K%^%l%$: %*" : "%^%l%$: %*");
  log->set_formatter(std::move(layout));
  spdlog::set_default_logger(log);
}

}  // namespace

Console::Console(const ConsoleOptions& options)
    : options_(options),
      uses_color_(uses_color(STDERR_FILENO, options.color)),
      is_terminal_(tessera::is_terminal(STDERR_FILENO)) {
  if (environment("TERM") == "dumb") is_terminal_ = false;
  set_up_log(options_, uses_color_, is_terminal_);
}

void Console::say(std::string_view line) const {
  if (!options_.quiet) tell(line);
}

void Console::tell(std::string_view line) const {
  write(concat(escape_control_characters(line), '\n'));
}

void Console::say_dim(std::string_view line) const {
  if (!uses_color_) return say(line);
  if (!options_.quiet) write(concat(kDim, escape_control_characters(line), kPlain, '\n'));
}

void Console::report(const Error& error) const {
  report(error.what());
  if (!error.hint().empty()) {
    write(concat("hint: ", escape_control_characters(error.hint()), '\n'));
  }
  if (options_.is_verbose) {
    write(concat("at ", error.where().file_name(), ':', error.where().line(), '\n'));
  }
}

void Console::report(std::string_view error_message) const {
  const std::string label = uses_color_ ? concat(kRed, "error:", kPlain) : "error:";
  write(concat(label, ' ', escape_control_characters(error_message), '\n'));
}

void Console::write(std::string_view text) const {
  // There is nobody left to tell when standard error fails.
  try {
    write_all(STDERR_FILENO, text, "standard error");
  } catch (const OutputClosed&) {
  } catch (const Interrupted&) {
  } catch (const Error&) {
  }
}

}  // namespace tessera
