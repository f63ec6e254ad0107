// The flags about what a chat template does beside placing messages: its own variables, thinking.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "engine/options.h"

namespace tessera {

// --template-arg.
void add_template_option(CLI::App& app, EngineOptions& options);

// Whether a model is to think before it answers, and whether its thoughts are shown where standard
// output is no terminal.
struct ThinkingOptions {
  std::optional<bool> thinks;  // as its template does when nothing is said
  bool is_shown = false;
};

// --think, --no-think and --show-thinking.
void add_thinking_options(CLI::App& app, ThinkingOptions& options);

}  // namespace tessera
