// tessera prefill: a document is read once, and its keys and values kept in a file.
#include <memory>

#include "apps/answer/answer.h"
#include "apps/answer/kv_output.h"
#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/options/template_options.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"
#include "apps/terminal/human_units.h"
#include "engine/lap_clock.h"
#include "engine/model_description.h"
#include "engine/model_fingerprint.h"

namespace tessera {
namespace {

struct PrefillOptions {
  EngineOptions engine;
  PromptOptions prompt;
  std::string file;
  std::string output;
};

void check_files(const PrefillOptions& options) {
  if (options.output == "-") {
    throw UsageError("--output: keys and values cannot go to standard output");
  }
  require_separate_files(
      options.engine,
      {{"--system-file", options.prompt.system_file}, {"the document", options.file}},
      {{"--output", options.output}});
}

Conversation read_opening(const PrefillOptions& options, const Console& console) {
  std::string document = read_prompt_text(
                             options.file, options.prompt.invalid_utf8,
                             [&options] { return read_text_limit(options.engine); }, console)
                             .text;
  require_text(document, options.file);
  Conversation opening(system_messages(options.prompt, console));
  opening.set_document(std::move(document));
  return opening;
}

// Keys and values of the prompt, for one token that nobody asks for.
void compute(Engine& engine, std::span<const TokenId> prompt, const Console& console) {
  ProgressBar bar(console, "reading the document");
  GenerationCallbacks callbacks;
  callbacks.on_prefill = [&bar](int64_t done, int64_t total) {
    bar.update(static_cast<double>(done) / static_cast<double>(total),
               concat(done, '/', total, " tokens"));
  };
  callbacks.is_cancelled = is_interrupted;
  const SequencePtr sequence = engine.create_sequence();
  const GenerationResult result =
      engine.generate(*sequence, prompt, {.temperature = 0.0, .max_tokens = 1}, callbacks);
  throw_if_interrupted();
  if (result.stop_reason == StopReason::kNonFiniteLogits) throw Error(result.error);
}

int run_prefill(const PrefillOptions& options, const Console& console) {
  check_files(options);
  const Conversation opening = read_opening(options, console);
  FileReplacement file(options.output);
  const std::string fingerprint = model_fingerprint(options.engine);
  const std::unique_ptr<Engine> engine = load_engine(options.engine, console);
  const std::vector<TokenId> prompt = opening_tokens(*engine, opening, {}, console);
  LapClock clock;
  compute(*engine, prompt, console);
  const double seconds = clock.lap();
  const auto written = write_kv(*engine, prompt, {fingerprint, opening.text()}, file, console);
  CHECK(written, options.file, ": has ", counted(prompt.size(), "token"),
        " with what precedes it, and only whole pages of ", engine->memory_plan().page_size,
        " are kept: there is nothing to gain");
  console.say_dim(concat(options.output, ": ", counted(written->num_tokens, "token"), ", ",
                         human_bytes(written->file_bytes), "; computed in ", fixed(seconds, 2),
                         " s, written in ", fixed(clock.lap(), 2), " s"));
  return kExitOk;
}

}  // namespace

void add_prefill(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<PrefillOptions>();
  CLI::App& command = *app.add_subcommand("prefill", "read a document once, to ask about it often");
  command.add_option("file", options->file, "the document, UTF-8 text; - for stdin")
      ->option_text("FILE")
      ->required();
  command.add_option("-o,--output", options->output, "where its keys and values go")
      ->option_text("FILE")
      ->required();
  add_system_options(command, options->prompt);
  add_replace_invalid_option(command, options->prompt.invalid_utf8);
  add_template_option(command, options->engine);
  add_model_options(command, options->engine);
  command.remove_option(command.get_option("--no-prefix-cache"));  // its pages are what is written
  add_console_options(command, invocation.console);
  command.footer(
      "The file holds the beginning of a conversation, its tokens, and what the model computed of\n"
      "them: the system message, if there is one, and a first message of yours that begins with\n"
      "the document. What you ask with --kv FILE of chat, generate, batch or summarize follows\n"
      "the document in that message, after an empty line, and only the question is computed.\n"
      "The file belongs to the model, --dtype, --kv-dtype and --page-size that it was made with,\n"
      "and to -c where the model's RoPE depends on it, as with --rope-scaling; it is as large as\n"
      "the document's share of the KV cache. An existing one is replaced when the new one is\n"
      "complete.\n"
      "\n"
      "Examples:\n"
      "  tessera prefill -m weights/demo report.txt -o report.kv\n"
      "  tessera chat -m weights/demo --kv report.kv\n"
      "  tessera generate -m weights/demo --kv report.kv -p \"Who wrote it?\"");
  command.callback([options, &invocation] {
    require_model(options->engine);
    require_context_choice(options->engine,
                           "nobody knows yet what will be asked about the document");
    invocation.run = [options](const Console& console) { return run_prefill(*options, console); };
  });
}

}  // namespace tessera
