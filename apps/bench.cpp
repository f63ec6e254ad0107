// tessera bench: tokens per second against the limit that memory sets.
#include <algorithm>
#include <array>
#include <memory>

#include "apps/answer.h"
#include "apps/bench_case.h"
#include "apps/commands.h"
#include "apps/common_options.h"
#include "apps/exit_codes.h"
#include "apps/human_units.h"
#include "apps/output.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  EngineOptions engine;
  std::vector<int64_t> prompt_lengths;  // empty: kDefaultPromptLengths, as far as they fit
  std::vector<int64_t> decode_lengths = {128};
  std::vector<int64_t> batch_sizes = {1};
  int64_t repetitions = 5;
  std::string json_path;
};

constexpr std::array<int64_t, 2> kDefaultPromptLengths = {512, 2048};

void require_positive(const std::vector<int64_t>& values, const char* flag) {
  for (const int64_t value : values) {
    if (value < 1) throw UsageError(concat(flag, " must be 1 or more, got ", value));
  }
}

std::vector<BenchCase> bench_cases(const BenchOptions& options, int64_t context_size,
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
        // One more: the token that ends the prompt's round.
        const int64_t needed = prompt_length + 1 + decode_length;
        if (needed <= context_size) {
          cases.push_back({batch_size, prompt_length, decode_length});
          continue;
        }
        const std::string problem = concat("prompt ", prompt_length, " + 1 + decode ",
                                           decode_length, " > context ", context_size, " tokens");
        CHECK(is_default, problem);
        console.say("skipped: " + problem);
      }
    }
  }
  CHECK(!cases.empty(), "the context of ", context_size, " tokens holds none of the cases");
  return cases;
}

std::string row(std::initializer_list<std::string> cells) {
  std::string line;
  for (const std::string& cell : cells) {
    line += std::string(cell.size() < 13 ? 13 - cell.size() : 1, ' ') + cell;
  }
  return line + "\n";
}

std::string measurement_text(const Measurement& measurement) {
  return concat(fixed(measurement.median, 1), " ±", fixed(measurement.spread * 50, 1), "%");
}

struct BenchReport {
  std::vector<BenchResult> results;
  int64_t repetitions = 0;
  uint64_t peak_resident_bytes = 0;
  double read_bandwidth = 0.0;  // bytes per second
};

std::string table(const BenchReport& report) {
  std::string text = row({"batch", "prompt", "decode", "prefill tok/s", "decode tok/s", "read/step",
                          "GB/s", "of memory"});
  for (const BenchResult& result : report.results) {
    const BenchCase& bench_case = result.bench_case;
    text += row({std::to_string(bench_case.batch_size), std::to_string(bench_case.prompt_length),
                 std::to_string(bench_case.decode_length),
                 measurement_text(result.prefill_tokens_per_second),
                 measurement_text(result.decode_tokens_per_second),
                 human_bytes(result.bytes_per_step), fixed(result.bytes_per_second / 1e9, 1),
                 fixed(100 * result.bytes_per_second / report.read_bandwidth, 1) + "%"});
  }
  return text;
}

std::string header(const Engine& engine, const BenchReport& report) {
  return concat("model        ", engine.folder().path, "\ndevice       ",
                engine.device_description(), ", reads ", fixed(report.read_bandwidth / 1e9, 1),
                " GB/s\nload         ", fixed(engine.load_timings().total_seconds, 2),
                " s\nmemory       ", human_bytes(engine.allocated_bytes()), ", process at most ",
                human_bytes(report.peak_resident_bytes), "\nweights      ",
                human_bytes(engine.weight_bytes_per_token()), " read a step\n\n");
}

Json measurement_json(const Measurement& measurement) {
  return {{"median", measurement.median}, {"spread", measurement.spread}};
}

Json report_json(const Engine& engine, const EngineOptions& options, const BenchReport& report) {
  Json object = engine_json(engine, options);
  object["peak_resident_bytes"] = report.peak_resident_bytes;
  object["weight_bytes_per_token"] = engine.weight_bytes_per_token();
  object["read_bytes_per_second"] = report.read_bandwidth;
  object["repetitions"] = report.repetitions;
  object["results"] = Json::array();
  for (const BenchResult& result : report.results) {
    object["results"].push_back(
        {{"batch_size", result.bench_case.batch_size},
         {"prompt_length", result.bench_case.prompt_length},
         {"decode_length", result.bench_case.decode_length},
         {"prefill_tokens_per_second", measurement_json(result.prefill_tokens_per_second)},
         {"decode_tokens_per_second", measurement_json(result.decode_tokens_per_second)},
         {"bytes_per_step", result.bytes_per_step},
         {"bytes_per_second", result.bytes_per_second},
         {"share_of_read_bandwidth", result.bytes_per_second / report.read_bandwidth}});
  }
  return object;
}

int run_bench(BenchOptions& options, const Console& console) {
  options.engine.max_sequences =
      *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end());
  const StatsFile json(options.json_path);
  const std::unique_ptr<Engine> engine = load_engine(options.engine, console);
  const std::vector<BenchCase> cases = bench_cases(options, engine->context_size(), console);
  require_sound_logits(*engine);

  BenchReport report;
  report.repetitions = options.repetitions;
  for (const BenchCase& bench_case : cases) {
    console.say(concat("timing batch ", bench_case.batch_size, ", prompt ",
                       bench_case.prompt_length, ", decode ", bench_case.decode_length));
    report.results.push_back(run_bench_case(*engine, bench_case, options.repetitions));
  }
  // Before the bandwidth is measured, which allocates more than the model may need.
  report.peak_resident_bytes = peak_resident_bytes();
  report.read_bandwidth = engine->measure_read_bandwidth();
  if (options.json_path != "-") print(header(*engine, report) + table(report));
  json.write(report_json(*engine, options.engine, report));
  return kExitOk;
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  constexpr const char* kGroup = "Measurement";
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command = *app.add_subcommand("bench", "measure tokens per second");
  command
      .add_option("--prompt-lengths,--context", options->prompt_lengths,
                  "prompt tokens, also the context decoding starts from (512,2048)")
      ->delimiter(',')
      ->option_text("N,...")
      ->group(kGroup);
  command.add_option("--decode-lengths", options->decode_lengths, "tokens to generate (128)")
      ->delimiter(',')
      ->option_text("N,...")
      ->group(kGroup);
  command.add_option("--batch-sizes", options->batch_sizes, "sequences at the same time (1)")
      ->delimiter(',')
      ->option_text("N,...")
      ->group(kGroup);
  command.add_option("--repetitions", options->repetitions, "times each case is measured (5)")
      ->option_text("N")
      ->group(kGroup);
  command.add_option("--json", options->json_path, "write the report as JSON; - for stdout")
      ->option_text("FILE")
      ->group(kGroup);
  add_model_options(command, options->engine);
  add_console_options(command, invocation.console);
  command.footer(
      "Speeds are medians, ± half the range. read/step is what one decode step must read: all\n"
      "weights and the KV cache of every sequence; \"of memory\" compares it with the speed at\n"
      "which this device reads a large buffer.\n"
      "\n"
      "Examples:\n"
      "  tessera bench -m weights/demo\n"
      "  tessera bench -m org/name --prompt-lengths 512,8192 --batch-sizes 1,8 --json -\n"
      "  tessera bench attention");
  add_bench_attention(command, invocation);
  command.callback([options, &command, &invocation] {
    if (command.got_subcommand("attention")) return;
    require_model(options->engine);
    require_positive(options->prompt_lengths, "--prompt-lengths");
    require_positive(options->decode_lengths, "--decode-lengths");
    require_positive(options->batch_sizes, "--batch-sizes");
    require_positive({options->repetitions}, "--repetitions");
    invocation.run = [options](const Console& console) { return run_bench(*options, console); };
  });
}

}  // namespace tessera
