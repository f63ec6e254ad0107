// The flags that several subcommands share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/files/same_file.h"
#include "apps/files/text_input.h"
#include "apps/options/number_option.h"
#include "apps/options/sampling_options.h"
#include "apps/process/exit_codes.h"
#include "apps/terminal/console.h"
#include "engine/options.h"
#include "engine/text/chat_template.h"

namespace tessera {

// --model, --device, --ctx-size and their like.
void add_model_options(CLI::App& app, EngineOptions& options);

// Of these, the ones that say how a model reads text: --model, --chat-template and their like.
void add_text_model_options(CLI::App& app, EngineOptions& options);

// And the ones that also mean something without a model: --device, --dtype, --threads.
void add_device_options(CLI::App& app, EngineOptions& options);

// The GPU that "cuda:N" names; nothing for any other text.
std::optional<int> find_gpu(std::string_view name);

// --prompt-lookup.
void add_prompt_lookup_option(CLI::App& app, EngineOptions& options);

// --kv-dtype, in the group that the caller names.
CLI::Option* add_kv_dtype_option(CLI::App& app, KvDType& kv_dtype);
// --attention-dtype, likewise.
CLI::Option* add_attention_dtype_option(CLI::App& app, EngineOptions& options);

// The error in terms of --ctx-size, with its value as it was typed for `command`.
UsageError usage_error(const CLI::App& command, const ContextSizeError& error);

// --temp, --seed, --stop, --max-tokens and their like.
void add_sampling_options(CLI::App& app, SamplingOptions& options);

// The group of flags about what is said. Those of `bench` count for `bench attention` too.
inline constexpr const char* kMessagesGroup = "Messages";

// -v, -q, --color, --no-progress.
void add_console_options(CLI::App& app, ConsoleOptions& options);

void add_stats_option(CLI::App& app, std::string& path);

// --system, --system-file, --raw and --replace-invalid.
struct PromptOptions {
  std::string system;
  std::string system_file;
  bool raw = false;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kRefuse;
};
void add_system_options(CLI::App& app, PromptOptions& options);
// Behind the flags of messages and templates, which --raw excludes.
void add_raw_option(CLI::App& app, PromptOptions& options);
void add_replace_invalid_option(CLI::App& app, InvalidUtf8& policy);

// --kv, which says what a conversation begins with instead of the flags above.
void add_kv_option(CLI::App& app, std::string& path);
// For require_context_choice().
inline constexpr const char* kKvContextReason =
    "keys and values of --kv were computed for one context, and serve no other";

// Throws UsageError when an output is an input, a file that `options` name, a file of the model, or
// another output. What else lies in the model's folder may be replaced.
void require_separate_files(const EngineOptions& options, std::vector<NamedFile> inputs,
                            const std::vector<NamedFile>& outputs);

// The system message as a conversation of one message, or none. Where somebody has to type it, says
// how that ends.
std::vector<Message> system_messages(const PromptOptions& options, const Console& console);

// Whether --rope-scaling auto was given and no -c, so that the context is what a prompt needs.
bool prompt_chooses_context(const EngineOptions& options);

// Throws UsageError, with the reason, in that case: for commands that know no prompt before weights
// are read.
void require_context_choice(const EngineOptions& options, const std::string& reason);

// Throws UsageError when no model was named.
void require_model(const EngineOptions& options);

}  // namespace tessera
