// tessera bench: tokens per second against the limit that memory sets.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "apps/answer/answer.h"
#include "apps/bench/case.h"
#include "apps/bench/compare.h"
#include "apps/bench/report.h"
#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"
#include "engine/benchmark/read_bandwidth.h"

namespace tessera {
namespace {

struct BenchOptions {
  EngineOptions engine;
  std::vector<int64_t> prompt_lengths;  // empty: kDefaultPromptLengths, as far as they fit
  std::vector<int64_t> decode_lengths = {128};
  std::vector<int64_t> batch_sizes = {1};
  int64_t repetitions = 5;
  std::string json_path;
  std::string compare_path;
};

constexpr std::array<int64_t, 2> kDefaultPromptLengths = {512, 2048};

constexpr NumberLimits<int64_t> kLengthLimits = {1, kContextSizeLimits.high};
constexpr NumberLimits<int64_t> kRepetitionLimits = {1, 1000};

constexpr NumberLimits<int64_t> kBatchSizeLimits = {1, kMaxSequencesLimits.high};

// Why a case cannot be timed; empty if it can. All its sequences run at the same time to the end.
std::string problem_of(const BenchCase& bench_case, const MemoryPlan& plan) {
  // One more: the token that ends the prompt's round.
  const int64_t needed = bench_case.prompt_length + 1 + bench_case.decode_length;
  const std::string demand =
      concat("prompt ", bench_case.prompt_length, " + 1 + decode ", bench_case.decode_length);
  const int64_t context_size = plan.limits.context_size;
  if (needed > context_size) {
    return concat(demand, " > context ", counted(context_size, "token"));
  }
  const int64_t pages = bench_case.batch_size * ((needed + plan.page_size - 1) / plan.page_size);
  if (pages <= plan.num_pages) return "";
  return concat(bench_case.batch_size, " x (", demand, ") > KV cache ",
                counted(plan.num_pages, "page"), " of ", plan.page_size);
}

std::vector<BenchCase> bench_cases(const BenchOptions& options, const MemoryPlan& plan,
                                   const Console& console) {
  const bool is_default = options.prompt_lengths.empty();
  std::vector<int64_t> prompt_lengths = options.prompt_lengths;
  if (is_default) {
    prompt_lengths.assign(kDefaultPromptLengths.begin(), kDefaultPromptLengths.end());
  }
  std::vector<BenchCase> cases;
  for (const int64_t batch_size : options.batch_sizes) {
    for (const int64_t prompt_length : prompt_lengths) {
      for (const int64_t decode_length : options.decode_lengths) {
        const BenchCase bench_case = {batch_size, prompt_length, decode_length};
        const std::string problem = problem_of(bench_case, plan);
        if (problem.empty()) {
          cases.push_back(bench_case);
          continue;
        }
        if (!is_default) throw UsageError("--prompt-lengths, --decode-lengths: " + problem);
        console.say("skipped: " + problem);
      }
    }
  }
  if (cases.empty()) {
    throw UsageError(concat("the context of ", counted(plan.limits.context_size, "token"),
                            " holds none of the cases"),
                     "--prompt-lengths and --decode-lengths choose shorter ones");
  }
  return cases;
}

// One token after a prompt of a few, which is what a person waits for first.
FirstToken time_first_token(Engine& engine) {
  const std::vector<TokenId> prompt(8, 0);
  SamplingParams params;
  params.max_tokens = 1;
  params.ignore_eos = true;
  const SequencePtr sequence = engine.create_sequence();
  const GenerationResult result =
      engine.generate(*sequence, prompt, params, {.is_cancelled = is_interrupted});
  throw_if_interrupted();
  return first_token(engine, result);
}

// They would be those of bench, which does not run, and so do nothing.
void refuse_flags_before_attention(const CLI::App& bench) {
  std::string flags;
  for (const CLI::Option* const option : bench.get_options()) {
    const bool was_given = std::ranges::count(bench.parse_order(), option) > 0;
    if (!was_given || option->get_group() == kMessagesGroup) continue;
    flags += (flags.empty() ? "" : ", ") + option->get_name();
  }
  if (flags.empty()) return;
  throw UsageError(concat("flags of bench attention follow its name, got ", flags, " before it"));
}

int run_bench(BenchOptions& options, const Console& console) {
  require_separate_files(options.engine, {}, {{"--json", options.json_path}});
  options.engine.max_sequences =
      *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end());
  options.engine.prefix_cache = false;  // its sequences are alike, and each is to be computed
  std::optional<BenchBaseline> baseline;
  if (!options.compare_path.empty()) baseline = read_baseline(options.compare_path, console);
  const StatsFile json(options.json_path);
  std::unique_ptr<Engine> engine = load_engine(options.engine, console);
  BenchReport report;
  report.first_token = time_first_token(*engine);
  const std::vector<BenchCase> cases = bench_cases(options, engine->memory_plan(), console);
  if (baseline) require_comparable(*baseline, *engine, options.engine, cases);
  require_sound_logits(*engine);

  report.repetitions = options.repetitions;
  for (const BenchCase& bench_case : cases) {
    console.say(concat("timing batch ", bench_case.batch_size, ", prompt ",
                       bench_case.prompt_length, ", decode ", bench_case.decode_length));
    report.results.push_back(run_bench_case(*engine, bench_case, options.repetitions));
  }
  // Before the bandwidth is measured, which allocates more than the model may need.
  report.peak_resident_bytes = peak_resident_bytes();
  const BenchedModel model(*engine, options.engine);
  engine.reset();  // so that its memory is free to measure with
  report.read_bandwidth = measure_read_bandwidth(options.engine, is_interrupted);
  if (options.json_path != "-") {
    print(escape_control_characters(bench_header(model, report)) + bench_table(report));
    if (baseline) print("\n" + comparison_table(*baseline, report));
  }
  json.write(bench_json(model, report));
  return kExitOk;
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  constexpr const char* kGroup = "Measurement";
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command = *app.add_subcommand("bench", "measure tokens per second");
  add_numbers(command, "--prompt-lengths,--context", options->prompt_lengths, kLengthLimits,
              "prompt tokens, also the context decoding starts from (512,2048)", Suffix::kKibi)
      ->group(kGroup);
  add_numbers(command, "--decode-lengths", options->decode_lengths, kLengthLimits,
              "tokens to generate (128)", Suffix::kKibi)
      ->group(kGroup);
  add_numbers(command, "--batch-sizes", options->batch_sizes, kBatchSizeLimits,
              "sequences at the same time (1)")
      ->group(kGroup);
  add_number(command, "--repetitions", options->repetitions, kRepetitionLimits,
             "times each case is measured (5)")
      ->group(kGroup);
  command.add_option("--json", options->json_path, "write the report as JSON; - for stdout")
      ->option_text("FILE")
      ->group(kGroup);
  command
      .add_option("--compare", options->compare_path,
                  "also show the change since an earlier run's --json FILE")
      ->option_text("FILE")
      ->group(kGroup);
  add_model_options(command, options->engine);
  add_console_options(command, invocation.console);
  command.footer(
      "Speeds are medians, ± half the range where there are several repetitions. read/step is\n"
      "what one decode step must read: all weights and the KV cache of every sequence; \"of\n"
      "memory\" compares it with the speed at which this device reads a large buffer, which\n"
      "caches can exceed. --compare calls a case faster or slower when it changed by more than\n"
      "the repetitions of either run spread, else the same; a slower case is no error.\n"
      "\n"
      "Examples:\n"
      "  tessera bench -m weights/demo\n"
      "  tessera bench -m org/name --prompt-lengths 512,8192 --batch-sizes 1,8 --json -\n"
      "  tessera bench -m org/name --json before.json\n"
      "  tessera bench -m org/name --compare before.json\n"
      "  tessera bench attention");
  add_bench_attention(command, invocation);
  command.callback([options, &command, &invocation] {
    if (command.got_subcommand("attention")) {
      refuse_flags_before_attention(command);
      return;
    }
    require_model(options->engine);
    require_context_choice(options->engine, "there is no prompt");
    if (!options->compare_path.empty() && options->repetitions < 2) {
      throw UsageError("--compare needs --repetitions 2 or more: one has no spread");
    }
    if (!options->compare_path.empty() && options->json_path == "-") {
      throw UsageError("--compare prints a table: give --json a file");
    }
    invocation.run = [options](const Console& console) { return run_bench(*options, console); };
  });
}

}  // namespace tessera
