// tessera generate: one prompt, one answer.
#include <memory>

#include "apps/answer/answer.h"
#include "apps/answer/kv_input.h"
#include "apps/answer/needed_context.h"
#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/options/overflow_option.h"
#include "apps/options/template_options.h"
#include "apps/process/exit_codes.h"
#include "engine/model_description.h"

namespace tessera {
namespace {

struct GenerateOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  PromptOptions prompt;
  ThinkingOptions thinking;
  OnOverflow on_overflow = OnOverflow::kError;
  std::string text;
  std::string file;
  std::string kv_path;
  std::string stats_path;
};

std::string read_prompt(const GenerateOptions& options, const Console& console) {
  const InvalidUtf8 policy = options.prompt.invalid_utf8;
  const auto find_limit = [&options] {
    const bool takes_any =
        options.on_overflow == OnOverflow::kMiddle || prompt_chooses_context(options.engine);
    return takes_any ? TextLimit() : read_text_limit(options.engine);
  };
  const std::string file = options.text == "-" ? "-" : options.file;
  std::string text = file.empty() ? checked_utf8(options.text, "--prompt", policy)
                                  : read_prompt_text(file, policy, find_limit, console).text;
  // A space is nothing to answer, but something to continue.
  if (options.prompt.raw && !text.empty()) return text;
  if (!file.empty()) require_text(text, file);
  if (is_blank(text)) throw UsageError("prompt is empty");
  return text;
}

// Those that were given, with the context that the prompt needs where it is the prompt's to choose.
EngineOptions options_for_prompt(const GenerateOptions& options, const std::string& text,
                                 const Conversation& opening, const Console& console) {
  EngineOptions engine = options.engine;
  if (!prompt_chooses_context(engine)) return engine;
  const PromptCounter counter(options.engine, console);
  const Message question = {Role::kUser, text};
  const int64_t tokens = options.prompt.raw ? counter.text_tokens(text)
                                            : counter.chat_tokens(opening.continued({&question, 1}),
                                                                  options.thinking.thinks);
  engine.context_size = counter.context_size(tokens, options.sampling);
  return engine;
}

std::vector<TokenId> encode_prompt(const Engine& engine, const GenerateOptions& options,
                                   std::string text, const Conversation& opening,
                                   const Console& console) {
  ProgressBar bar(console, "tokenising");
  const bool takes_any = options.on_overflow == OnOverflow::kMiddle;
  if (options.prompt.raw) {
    return takes_any ? encode_long_text(engine, text, interruptible(bar))
                     : engine.encode_text(text, interruptible(bar));
  }
  const Message question = {Role::kUser, std::move(text)};
  const std::vector<Message> messages = opening.continued({&question, 1});
  const ChatInputs inputs = thinking_inputs(engine, options.thinking.thinks, console);
  return takes_any ? encode_long_chat(engine, messages, inputs, interruptible(bar))
                   : engine.encode_chat(messages, inputs, interruptible(bar));
}

void check_files(const GenerateOptions& options) {
  require_separate_files(options.engine,
                         {{"--system-file", options.prompt.system_file},
                          {"--kv", options.kv_path},
                          {"--file", options.file}},
                         {{"--stats-json", options.stats_path}});
}

int run_generate(const GenerateOptions& options, const Console& console) {
  // Everything that can be wrong with the command line is found before the weights are read.
  check_files(options);
  std::string text = read_prompt(options, console);
  const auto kv = open_kv_option(options.kv_path, options.engine);
  const Conversation opening =
      kv ? kv->opening : Conversation(system_messages(options.prompt, console));
  resolve_sampling(options.sampling, {});
  const StatsFile stats(options.stats_path);

  const std::unique_ptr<Engine> engine =
      load_engine(options_for_prompt(options, text, opening, console), console);
  tell_unused_seed(options.sampling, *engine, console);
  SamplingParams params = resolve_sampling(options.sampling, engine->default_sampling());
  params.continues_prompt = options.prompt.raw;
  FittedPrompt prompt = {
      .tokens = encode_prompt(*engine, options, std::move(text), opening, console), .left_out = {}};
  if (options.on_overflow == OnOverflow::kMiddle) {
    prompt = leave_out_middle(*engine, std::move(prompt.tokens), params);
  }
  if (kv) {
    load_kv(*engine, kv->file, console);
    compare_with_kv(prompt.tokens, kv->file, *engine, console);
  }
  const AnswerStyle style = {.has_thinking = !options.prompt.raw,
                             .shows_thinking = options.thinking.is_shown};
  answer_once(*engine, options.engine, prompt, params, style, stats, console);
  return kExitOk;
}

}  // namespace

void add_generate(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App& command = *app.add_subcommand("generate", "answer one prompt");
  CLI::Option* text = command.add_option("-p,--prompt", options->text, "the prompt; - for stdin");
  text->option_text("TEXT")->group("Prompt");
  CLI::Option* file =
      command.add_option("-f,--file", options->file, "the prompt from a file; - for stdin");
  file->option_text("FILE")->excludes(text)->group("Prompt");
  add_system_options(command, options->prompt);
  add_overflow_option(command, options->on_overflow, /*can_chunk=*/false);
  add_template_option(command, options->engine);
  add_thinking_options(command, options->thinking);
  add_replace_invalid_option(command, options->prompt.invalid_utf8);
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->engine);
  add_raw_option(command, options->prompt);
  add_kv_option(command, options->kv_path);
  add_prompt_lookup_option(command, options->engine);
  add_console_options(command, invocation.console);
  add_stats_option(command, options->stats_path);
  command.footer(
      "The answer goes to standard output, everything else to standard error. What a model thinks\n"
      "before its answer, between <think> and </think>, is shown on a terminal, dimmed.\n"
      "\n"
      "Examples:\n"
      "  tessera generate -m weights/demo -p \"Tell me a story about a fox.\"\n"
      "  tessera generate -m weights/demo -f question.txt --temp 0.7 --seed 1 > answer.txt\n"
      "  tessera generate -m weights/demo --kv report.kv -p \"Who wrote it?\"\n"
      "  echo \"Once upon a time\" | tessera generate -m weights/demo --raw -p - -n 64");
  command.callback([options, text, file, &invocation] {
    require_model(options->engine);
    if (text->empty() && file->empty()) {
      throw UsageError("no prompt given", "use -p TEXT, -f FILE, or -p - for standard input");
    }
    if (!options->kv_path.empty()) require_context_choice(options->engine, kKvContextReason);
    invocation.run = [options](const Console& console) { return run_generate(*options, console); };
  });
}

}  // namespace tessera
