// tessera summarize: one document, one summary.
#include <memory>

#include "apps/answer/answer.h"
#include "apps/answer/kv_input.h"
#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/options/template_options.h"
#include "apps/process/exit_codes.h"
#include "engine/model_description.h"

namespace tessera {
namespace {

struct SummarizeOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  ThinkingOptions thinking;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kRefuse;
  std::string file;
  std::string kv_path;
  std::string instruction = "Summarize the following document.";
  std::string stats_path;

  SummarizeOptions() { sampling.max_tokens = 512; }
};

// A document is never cut silently: it fits or the person is told what would.
void require_fit(const Engine& engine, const ContextDemand& demand) {
  if (demand.fits()) return;
  const int64_t needed = demand.prompt_tokens + demand.answer_tokens;
  const int64_t model_maximum = engine.folder().config.max_position_embeddings;
  throw Error(concat("the document does not fit: ", counted(demand.prompt_tokens, "token"), " + ",
                     demand.answer_tokens, " reserved for the summary = ", needed,
                     ", the context holds ", demand.context_size),
              needed <= model_maximum
                  ? concat("-c ", needed, " would hold it, if memory allows")
                  : concat("this model holds at most ", counted(model_maximum, "token"),
                           "; use one with a longer context, or a shorter document"));
}

// Instruction and document; after the document of --kv, which comes first, the instruction alone.
Message read_request(const SummarizeOptions& options, const Console& console) {
  const std::string instruction =
      checked_utf8(options.instruction, "--instruction", options.invalid_utf8);
  if (!options.kv_path.empty()) return {Role::kUser, instruction};
  const std::string document = read_prompt_text(
      options.file, options.invalid_utf8, [&options] { return read_text_limit(options.engine); },
      console);
  if (is_blank(document)) throw UsageError("the document is empty");
  return {Role::kUser, instruction + "\n\n" + document};
}

int run_summarize(const SummarizeOptions& options, const Console& console) {
  const Message request = read_request(options, console);
  const auto kv = open_kv_option(options.kv_path, options.engine);
  const Conversation opening = kv ? kv->opening : Conversation();
  resolve_sampling(options.sampling, {});
  const StatsFile stats(options.stats_path);

  const std::unique_ptr<Engine> engine = load_engine(options.engine, console);
  const SamplingParams params = resolve_sampling(options.sampling, engine->default_sampling());
  ProgressBar bar(console, "tokenising");
  const std::vector<TokenId> prompt = engine->encode_chat(
      opening.continued({&request, 1}), thinking_inputs(*engine, options.thinking.thinks, console),
      interruptible(bar));
  bar.clear();
  require_fit(*engine, engine->context_demand(prompt, params));
  if (kv) load_kv(*engine, kv->file, console);
  const AnswerStyle style = {.shows_thinking = options.thinking.is_shown};
  answer_once(*engine, options.engine, prompt, params, style, stats, console);
  return kExitOk;
}

}  // namespace

void add_summarize(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<SummarizeOptions>();
  CLI::App& command = *app.add_subcommand("summarize", "summarize one document");
  CLI::Option* file =
      command.add_option("file", options->file, "the document, UTF-8 text; - for stdin");
  file->option_text("FILE");
  command
      .add_option("--instruction", options->instruction,
                  "what to ask of the document (" + options->instruction + ")")
      ->option_text("TEXT")
      ->group("Prompt");
  add_replace_invalid_option(command, options->invalid_utf8);
  add_template_option(command, options->engine);
  add_thinking_options(command, options->thinking);
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->engine);
  add_kv_option(command, options->kv_path);
  add_prompt_lookup_option(command, options->engine, /*is_auto=*/true);
  add_console_options(command, invocation.console);
  add_stats_option(command, options->stats_path);
  command.footer(
      "--max-tokens is 512 unless given. The whole document must fit the context.\n"
      "\n"
      "Examples:\n"
      "  tessera summarize -m weights/demo report.txt\n"
      "  tessera summarize -m weights/demo --kv report.kv\n"
      "  tessera summarize -m weights/demo --instruction \"List the decisions.\" minutes.txt");
  command.callback([options, &invocation] {
    require_model(options->engine);
    if (options->file.empty() == options->kv_path.empty()) {
      throw UsageError(options->file.empty() ? "file is required" : "file excludes --kv",
                       "the document comes from FILE, or from a file of tessera prefill with --kv");
    }
    invocation.run = [options](const Console& console) { return run_summarize(*options, console); };
  });
}

}  // namespace tessera
