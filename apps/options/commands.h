// The subcommands, as main knows them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "apps/terminal/console.h"

namespace tessera {

// What the parsed command line asks for. `run` returns the exit code.
struct Invocation {
  std::vector<std::string> arguments;  // the command line itself, program first
  ConsoleOptions console;
  std::function<int(const Console&)> run;
};

// Each adds its subcommand to the parser; when the subcommand is parsed, it sets invocation.run.
void add_chat(CLI::App& app, Invocation& invocation);
void add_generate(CLI::App& app, Invocation& invocation);
void add_batch(CLI::App& app, Invocation& invocation);
void add_prefill(CLI::App& app, Invocation& invocation);
void add_summarize(CLI::App& app, Invocation& invocation);
void add_bench(CLI::App& app, Invocation& invocation);
void add_bench_attention(CLI::App& bench, Invocation& invocation);  // of bench
void add_tokenize(CLI::App& app, Invocation& invocation);
void add_inspect(CLI::App& app, Invocation& invocation);

}  // namespace tessera
