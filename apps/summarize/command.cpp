// The flags of tessera summarize.
#include <memory>
#include <utility>

#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/summarize/summarize.h"

namespace tessera {
namespace {

SummaryStyle parse_style(const std::string& text) {
  if (text == "bullets") return SummaryStyle::kBullets;
  if (text == "paragraph") return SummaryStyle::kParagraph;
  if (text == "facts") return SummaryStyle::kFacts;
  throw UsageError(refusal("--style", "bullets, paragraph or facts", text));
}

void add_instruction_options(CLI::App& command, SummarizeOptions& options) {
  constexpr const char* kGroup = "Prompt";
  CLI::Option* const style = command.add_option_function<std::string>(
      "--style",
      [&options](const std::string& text) { options.instruction.style = parse_style(text); },
      "bullets, paragraph or facts (as the model likes)");
  style->option_text("NAME")->group(kGroup);
  add_number(command, "--words", options.instruction.words, kWordsLimits,
             "ask for at most so many words")
      ->group(kGroup);
  command
      .add_option("--focus", options.instruction.focus,
                  "a question that the summary should answer above all")
      ->option_text("TEXT")
      ->group(kGroup);
  command
      .add_option("--instruction", options.instruction.own_text,
                  "what to ask of the document (" + Instruction().text() + ")")
      ->option_text("TEXT")
      ->excludes(style)
      ->group(kGroup);
}

void add_length_options(CLI::App& command, SummarizeOptions& options) {
  constexpr const char* kGroup = "Long documents";
  CLI::Option* const overflow =
      add_overflow_option(command, options.on_overflow, /*can_chunk=*/true)->group(kGroup);
  command.add_flag("--chunk", options.chunk, "read in parts also what would fit")
      ->excludes(overflow)
      ->group(kGroup);
  add_number(command, "--chunk-tokens", options.chunk_tokens, kChunkTokensLimits,
             "tokens of a part at most (8192, less where the context is short)", Suffix::kKibi)
      ->group(kGroup);
  add_number(
      command, "--overlap", options.overlap, kOverlapLimits,
      "tokens that two neighbouring parts share at most, up to a quarter of a part (64, or a\n"
      "16th of a part)",
      Suffix::kKibi)
      ->group(kGroup);
}

void add_output_options(CLI::App& command, SummarizeOptions& options) {
  constexpr const char* kGroup = "Output";
  command.add_flag("--each", options.each, "a summary of each file instead of one of all")
      ->group(kGroup);
  command
      .add_option("-o,--output", options.output_path, "write to this file; - for stdout (stdout)")
      ->option_text("FILE")
      ->group(kGroup);
  command
      .add_flag("--json", options.json,
                "an object with the summary, the plan, and which call read which tokens and bytes")
      ->group(kGroup);
}

// Where the document comes from.
void check_source(const SummarizeOptions& options) {
  if (options.files.empty() == options.kv_path.empty()) {
    throw UsageError(options.files.empty() ? "file is required" : "file excludes --kv",
                     "the document comes from FILE, or from a file of tessera prefill with --kv");
  }
}

// Each in its own name; not while flags are read, where an Error would be one of the parser.
void check_instruction(Instruction& instruction, InvalidUtf8 policy) {
  instruction.own_text = checked_utf8(std::move(instruction.own_text), "--instruction", policy);
  instruction.focus = checked_utf8(std::move(instruction.focus), "--focus", policy);
}

constexpr const char* kFooter =
    "A document that fits the context is read in one pass, and the summary is shown as it comes.\n"
    "One that does not is read in parts, which end with paragraphs or sentences; every token is\n"
    "in one of them, and a few are in two. All parts are computed together, then their summaries\n"
    "are summarized, in rounds until one is left. A line on standard error says first how many\n"
    "tokens there are, what will be done, and about how long it takes. Ctrl-C keeps the summaries\n"
    "of the parts that have been read, in the file of -o too. A part or, with --each, a document\n"
    "that fails costs no other: exit code 3 says that something is missing. --max-tokens is 512\n"
    "unless given, less where parts would become too short.\n"
    "\n"
    "Examples:\n"
    "  tessera summarize -m weights/demo report.txt\n"
    "  tessera summarize -m weights/demo --kv report.kv\n"
    "  tessera summarize -m weights/demo --style bullets --each minutes-*.txt -o summaries.txt\n"
    "  tessera summarize -m weights/demo --chunk-tokens 4k --json long.txt";

}  // namespace

void add_summarize(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<SummarizeOptions>();
  CLI::App& command = *app.add_subcommand("summarize", "summarize documents of any length");
  command.add_option("file", options->files, "documents, UTF-8 text; - for stdin")
      ->option_text("FILE...");
  add_instruction_options(command, *options);
  add_length_options(command, *options);
  add_output_options(command, *options);
  add_replace_invalid_option(command, options->invalid_utf8);
  add_template_option(command, options->engine);
  add_thinking_options(command, options->thinking);
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->engine);
  add_kv_option(command, options->kv_path);
  // What --kv brings has been read in one pass.
  for (const char* const name : {"--chunk", "--chunk-tokens", "--overlap", "--on-overflow",
                                 "--each", "--json", "--output"}) {
    command.get_option("--kv")->excludes(command.get_option(name));
  }
  add_prompt_lookup_option(command, options->engine);
  add_console_options(command, invocation.console);
  add_stats_option(command, options->stats_path);
  command.footer(kFooter);
  command.callback([options, &invocation] {
    require_model(options->engine);
    check_source(*options);
    if (!options->kv_path.empty()) require_context_choice(options->engine, kKvContextReason);
    invocation.run = [options](const Console& console) {
      check_instruction(options->instruction, options->invalid_utf8);
      return run_summarize(*options, console);
    };
  });
}

}  // namespace tessera
