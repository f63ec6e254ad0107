// The flags of tessera batch.
#include <chrono>
#include <memory>

#include "apps/batch/batch.h"
#include "apps/batch/devices/devices.h"
#include "apps/batch/sync_thread.h"
#include "apps/options/commands.h"
#include "apps/options/template_options.h"

namespace tessera {
namespace {

// As the text below says.
static_assert(SyncThread::kMaxDelay == std::chrono::milliseconds(50));

constexpr const char* kBatchFooter =
    "A request is a line of OpenAI's batch form or of a short one:\n"
    "  {\"custom_id\": \"a\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\",\n"
    "   \"body\": {\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}}\n"
    "  {\"id\": \"a\", \"prompt\": \"Hi\", \"max_tokens\": 64}\n"
    "The url /v1/completions continues a prompt, a text or a list of token ids, instead of a\n"
    "chat. Values of a request win over the flags; --system is for chats without a system\n"
    "message; so is what --kv begins chats with. A body may have n, stop, seed, max_tokens,\n"
    "min_tokens, ignore_eos, logprobs and top_logprobs, tools, and variables of the chat\n"
    "template in chat_template_kwargs. What a model thinks before it answers comes as\n"
    "reasoning_content beside content.\n"
    "\n"
    "Answers come in the order in which they are finished. Each is written at once: it\n"
    "outlasts a crash of the program, and one of the machine some 50 ms later. A run that was\n"
    "stopped goes on with --resume; it must share the model, the seed, the shard and the\n"
    "other settings, which are kept in OUTPUT.manifest.json. Ctrl-C lets the answers that\n"
    "have begun be finished, a second one stops at once. The digest at the end is the same\n"
    "whenever all answers are, in whatever order. Exit code 3 says that some requests have an\n"
    "error instead of an answer.\n"
    "\n"
    "Examples:\n"
    "  tessera batch -m weights/demo -i requests.jsonl -o answers.jsonl\n"
    "  tessera batch -m weights/demo -i requests.jsonl -o answers.jsonl --resume\n"
    "  tessera batch -m weights/demo -i questions.jsonl -o answers.jsonl --kv report.kv";

void add_file_options(CLI::App& command, BatchOptions& options) {
  constexpr const char* kGroup = "Files";
  command
      .add_option("-i,--input-file,--input", options.input_path,
                  "requests, one JSON a line; - for stdin")
      ->option_text("FILE")
      ->required()
      ->group(kGroup);
  command
      .add_option("-o,--output-file,--output", options.output_path,
                  "answers, one JSON a line; - for stdout")
      ->option_text("FILE")
      ->required()
      ->group(kGroup);
  CLI::Option* resume = command.add_flag("--resume", options.resume,
                                         "keep the answers that are there and do the rest");
  resume->group(kGroup);
  command.add_flag("--overwrite", options.overwrite, "replace the answers that are there")
      ->excludes(resume)
      ->group(kGroup);
  command
      .add_flag("--force", options.force,
                "resume although the model, a setting or a request has changed")
      ->needs(resume)
      ->group(kGroup);
  command.add_flag("--strict", options.strict, "do nothing when any request is bad")->group(kGroup);
  command
      .add_option_function<std::string>(
          "--shard", [&options](const std::string& text) { options.shard = parse_shard(text); },
          "do every N-th request from the I-th on, I from 0: 0/4, 1/4, 2/4 and 3/4 do all")
      ->option_text("I/N")
      ->group(kGroup);
}

}  // namespace

void add_batch(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<BatchOptions>();
  options->prompt.invalid_utf8 = InvalidUtf8::kAlwaysRefuse;  // there is no --replace-invalid
  CLI::App& command = *app.add_subcommand("batch", "answer a file of requests");
  add_file_options(command, *options);
  CLI::Option* devices = command.add_option_function<std::string>(
      "--devices", [options](const std::string& text) { options->devices = parse_devices(text); },
      "GPUs of this host that answer together, a process for each: 0,1,2,3");
  devices->option_text("LIST")->group("Model and device");
  options->engine.max_sequences = 0;
  add_number(command, "--max-sequences", options->engine.max_sequences, kMaxSequencesLimits,
             "answers that are computed at the same time; 0: as many as suit the device (0)")
      ->group("Model and device");
  add_system_options(command, options->prompt);
  add_overflow_option(command, options->on_overflow, /*can_chunk=*/false);
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->engine);
  devices->excludes(command.get_option("--device"));
  add_prompt_lookup_option(command, options->engine);
  add_template_option(command, options->engine);
  add_kv_option(command, options->kv_path);
  add_console_options(command, invocation.console);
  add_stats_option(command, options->stats_path);
  command.footer(kBatchFooter);
  command.callback([options, &invocation] {
    require_model(options->engine);
    require_context_choice(options->engine,
                           "which request is the longest is not known before all are read");
    options->arguments = invocation.arguments;
    invocation.run = [options](const Console& console) { return run_batch(*options, console); };
  });
}

}  // namespace tessera
