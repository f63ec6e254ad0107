#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/options/help_formatter.h"
#include "apps/options/unexpected_argument.h"
#include "apps/process/exit_codes.h"
#include "apps/process/out_of_memory.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"

namespace tessera {
namespace {

// A file opened while descriptor 1 is closed would become standard output and be written over.
void occupy_standard_descriptors() {
  for (int descriptor = open("/dev/null", O_RDONLY); descriptor >= 0;
       descriptor = open("/dev/null", O_RDONLY)) {
    if (descriptor > STDERR_FILENO) {
      close(descriptor);
      return;
    }
  }
}

// An empty name is what an unset variable of a shell leaves of one.
std::string refuse_empty(const std::string& name) {
  return name.empty() ? "the name of a file must not be empty" : "";
}

// What all subcommands of `app`, and theirs, have in common.
void finish_commands(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    command->group("Commands");
    // A flag given again overrides: so a shell alias can hold defaults.
    for (CLI::Option* option : command->get_options()) {
      const bool refuses_repetition =
          option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
      if (refuses_repetition && option->get_items_expected_max() == 1) option->take_last();
      // CLI11 would read "--verbose=X" with std::stoll, whose exceptions it lets through.
      const bool is_flag = option->get_items_expected_max() == 0;
      if (is_flag) option->disable_flag_override();
      const bool takes_file = option->get_option_text().find("FILE") != std::string::npos;
      if (takes_file) option->check(refuse_empty);
    }
    finish_commands(*command);
  }
}

void build_parser(CLI::App& app, Invocation& invocation) {
  app.description("tessera - run large language models from Hugging Face folders");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.set_version_flag("--version", "tessera " TESSERA_VERSION, "print the version and exit");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(36);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  add_chat(app, invocation);
  add_generate(app, invocation);
  add_summarize(app, invocation);
  add_prefill(app, invocation);
  add_batch(app, invocation);
  add_tokenize(app, invocation);
  add_inspect(app, invocation);
  add_bench(app, invocation);
  finish_commands(app);
  // Without this, what follows a command is taken for another command if it has the name of one,
  // even a file's name.
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n"
      "  tessera chat -m weights/demo\n"
      "  tessera generate -m weights/demo -p \"Who are you?\"\n"
      "  tessera COMMAND --help");
}

// CLI11 puts two empty lines between groups.
std::string help_text(const CLI::App& app) {
  std::string text = app.help();
  for (size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at)) {
    text.erase(at, 1);
  }
  return text;
}

// The subcommand that was given, or `app` when there was none.
const CLI::App& parsed_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

int report_usage(const CLI::App& app, const Console& console, std::string message,
                 const std::string& hint) {
  if (!message.empty() && message[0] != '-') {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  }
  std::string command;
  for (const CLI::App* parsed = &parsed_command(app); parsed != nullptr;
       parsed = parsed->get_parent()) {
    command = parsed->get_name() + (command.empty() ? "" : " ") + command;
  }
  const std::string help = "see '" + command + " --help'";
  console.report(Error(message, hint.empty() ? help : hint + "; " + help));
  return kExitUsage;
}

// For what nobody foresaw: what comes from people and files is an Error where it is read.
Error unexpected(const std::exception& error) {
  return Error(concat("tessera did not expect this: ", error.what()),
               "please report it, with the command and the files it was given");
}

int run(const CLI::App& app, const Invocation& invocation) {
  const Console console(invocation.console);
  try {
    return invocation.run(console);
  } catch (const UsageError& error) {
    return report_usage(app, console, error.what(), error.hint());
  } catch (const ContextSizeError& error) {
    const UsageError usage = usage_error(parsed_command(app), error);
    return report_usage(app, console, usage.what(), usage.hint());
  } catch (const Error& error) {
    console.report(error);
  } catch (const Interrupted& interrupted) {
    return exit_code_of(interrupted.signal);
  } catch (const Stopped&) {  // by the question is_interrupted
    return exit_code_of(pending_signal());
  } catch (const std::bad_alloc&) {
    end_out_of_memory();
  } catch (const std::exception& error) {
    console.report(unexpected(error));
  }
  return kExitFatal;
}

// What a command line without a command does.
std::function<int(const Console&)> printing(const std::string& text) {
  return [text](const Console&) {
    print(text);
    return kExitOk;
  };
}

int parse_and_run(int argument_count, char** arguments) {
  CLI::App app;
  app.name("tessera");
  Invocation invocation;
  invocation.arguments.assign(arguments, arguments + argument_count);
  build_parser(app, invocation);
  try {
    app.parse(argument_count, arguments);
    if (!invocation.run) invocation.run = printing(help_text(app));
  } catch (const CLI::CallForVersion& version) {
    invocation.run = printing(concat(version.what(), '\n'));
  } catch (const CLI::Success&) {
    const auto foreign = foreign_joined_flag(parsed_command(app), invocation.arguments);
    if (foreign) return report_usage(app, Console(), foreign->what(), foreign->hint());
    invocation.run = printing(help_text(app));
  } catch (const CLI::ExtrasError&) {
    const UsageError error =
        unexpected_argument(parsed_command(app), app.remaining(/*recurse=*/true).front());
    return report_usage(app, Console(), error.what(), error.hint());
  } catch (const CLI::ParseError& error) {
    return report_usage(app, Console(), parse_problem(error), "");
  } catch (const UsageError& error) {
    const auto foreign = foreign_joined_flag(parsed_command(app), invocation.arguments);
    const bool has_guess = error.hint().empty() && foreign;
    return report_usage(app, Console(), error.what(), has_guess ? foreign->hint() : error.hint());
  }
  return run(app, invocation);
}

}  // namespace
}  // namespace tessera

int main(int argument_count, char** arguments) {
  tessera::end_when_out_of_memory();
  tessera::occupy_standard_descriptors();
  tessera::install_signal_handlers();
  try {
    return tessera::parse_and_run(argument_count, arguments);
  } catch (const tessera::OutputClosed&) {
    return tessera::kExitClosedPipe;
  } catch (const std::exception& error) {
    tessera::Console().report(tessera::unexpected(error));
    return tessera::kExitFatal;
  }
}
