// tessera bench attention: the attention kernels alone, against standard attention and the device.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "apps/answer/stats.h"
#include "apps/bench/attention_report.h"
#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"

namespace tessera {
namespace {

struct Options {
  AttentionBenchmarkOptions benchmark;
  std::vector<int64_t> lengths;           // prompts
  std::vector<std::string> decode_cases;  // "16x32k"
  std::string json_path;
};

// What is timed unless lengths or cases are named.
const std::vector<int64_t> kDefaultLengths = {1024, 2048, 4096, 8192, 16384, 32768};
const std::vector<std::string> kDefaultDecodeCases = {"1x4k",  "1x32k", "1x128k", "8x8k",
                                                      "64x4k", "64x8k", "16x32k"};
const std::vector<int64_t> kDefaultCpuLengths = {512, 1024, 2048, 4096};
const std::vector<std::string> kDefaultCpuDecodeCases = {"1x1k", "1x4k", "8x1k"};

constexpr NumberLimits<int64_t> kAttendedLimits = {1, int64_t{1} << 24};  // tokens
constexpr NumberLimits<int64_t> kWindowLimits = {0, kAttendedLimits.high};
constexpr NumberLimits<int64_t> kHeadsLimits = {1, 1024};
constexpr NumberLimits<int64_t> kHeadDimLimits = {1, kMaxBenchmarkHeadDim};
constexpr NumberLimits<int64_t> kTimedRunLimits = {0, 1000};
constexpr NumberLimits<double> kSoftcapLimits = {0.0, 1e6};

// Short prompts are batched up to this many tokens, so that they fill the device.
int64_t tokens_of_prefill(DeviceType device) { return device == DeviceType::kCuda ? 8192 : 1024; }

// "16x32k": 16 sequences of 32768 tokens.
AttentionCase parse_decode_case(const std::string& text) {
  const size_t cross = std::min(text.find('x'), text.size());
  const std::string_view context = std::string_view(text).substr(std::min(cross + 1, text.size()));
  const auto batch_size = find_number(text.substr(0, cross), kAttendedLimits, Suffix::kKibi);
  const auto context_length = find_number(context, kAttendedLimits, Suffix::kKibi);
  if (!batch_size || !context_length) {
    const std::string allowed = concat("like 16x32k, with ", kAttendedLimits.text(), " twice");
    throw UsageError(refusal("--decode-cases", allowed, text));
  }
  return {.batch_size = *batch_size, .query_length = 1, .context_length = *context_length};
}

void check(const Options& options) {
  const AttentionHeads& heads = options.benchmark.heads;
  if (heads.num_heads % heads.num_kv_heads != 0) {
    throw UsageError(concat("--num-heads ", heads.num_heads,
                            " is not a multiple of --num-kv-heads ", heads.num_kv_heads));
  }
  if (heads.sliding_window > 0 && !heads.causal) {
    throw UsageError("--sliding-window is of causal attention: leave out --no-causal");
  }
}

std::vector<AttentionCase> list_cases(const Options& options, DeviceType device) {
  const bool on_cpu = device == DeviceType::kCpu;
  const bool use_defaults = options.lengths.empty() && options.decode_cases.empty();
  const std::vector<int64_t>& lengths = !use_defaults ? options.lengths
                                        : on_cpu      ? kDefaultCpuLengths
                                                      : kDefaultLengths;
  const std::vector<std::string>& decode_cases = !use_defaults ? options.decode_cases
                                                 : on_cpu      ? kDefaultCpuDecodeCases
                                                               : kDefaultDecodeCases;
  std::vector<AttentionCase> cases;
  for (const int64_t length : lengths) {
    const int64_t batch_size = std::max<int64_t>(1, tokens_of_prefill(device) / length);
    cases.push_back({batch_size, length, length});
  }
  for (const std::string& text : decode_cases) cases.push_back(parse_decode_case(text));
  return cases;
}

// In the order of `cases`. The longest contexts are timed first: what the device or its memory
// cannot take is refused before anybody has waited for the rest.
std::vector<AttentionResult> time_cases(AttentionBenchmark& benchmark,
                                        const std::vector<AttentionCase>& cases,
                                        const Console& console) {
  std::vector<size_t> order(cases.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&cases](size_t index) { return cases[index].context_length; });
  std::vector<AttentionResult> results(cases.size());
  for (const size_t index : order) {
    throw_if_interrupted();
    const AttentionCase& attention_case = cases[index];
    console.say(concat("timing ", attention_case.is_decode() ? "decode" : "prefill", ", batch ",
                       attention_case.batch_size, ", context ", attention_case.context_length));
    results[index] = benchmark.run(attention_case);
  }
  return results;
}

int run_bench_attention(const Options& options, const Console& console) {
  const StatsFile json(options.json_path);
  AttentionBenchmark benchmark(options.benchmark);
  benchmark.set_stop_question(is_interrupted);
  AttentionReport report;
  report.options = options.benchmark;
  report.device = benchmark.device_description();
  report.dtype = benchmark.dtype();
  if (options.benchmark.repetitions > 0) {
    console.say("measuring the device's limits");
    report.matmul_rate = benchmark.matmul_rate();
    report.read_bandwidth = benchmark.read_bandwidth();
  }
  report.results = time_cases(benchmark, list_cases(options, benchmark.device()), console);
  if (options.json_path != "-") print(attention_text(report));
  json.write(attention_json(report));
  return kExitOk;
}

void add_case_options(CLI::App& command, Options& options) {
  constexpr const char* kGroup = "What is timed";
  AttentionHeads& heads = options.benchmark.heads;
  PageLayout& layout = options.benchmark.layout;
  const auto add = [&command, kGroup](const char* flag, auto& value, const auto& limits,
                                      const char* help, Suffix suffix = Suffix::kNone) {
    return add_number(command, flag, value, limits, help, suffix)->group(kGroup);
  };
  add_numbers(command, "--lengths", options.lengths, kAttendedLimits,
              "prompts of these many tokens (1k,2k,4k,8k,16k,32k; on the CPU 512,1k,2k,4k)",
              Suffix::kKibi)
      ->group(kGroup);
  const auto take_decode_cases = [&options](const std::vector<std::string>& words) {
    for (const std::string& word : words) parse_decode_case(word);
    options.decode_cases = words;
  };
  add_list(
      command, "--decode-cases", take_decode_cases,
      "decode steps, sequences x tokens of context, e.g. 1x4k,16x32k (seven; on the CPU three)")
      ->option_text("BxN,...")
      ->group(kGroup);
  add("--num-heads", heads.num_heads, kHeadsLimits, "query heads (32)");
  add("--num-kv-heads", heads.num_kv_heads, kHeadsLimits, "key and value heads (8)");
  add("--head-dim", heads.head_dim, kHeadDimLimits, "dimensions of a head (128)");
  command
      .add_flag_callback(
          "--no-causal", [&heads] { heads.causal = false; }, "every query sees all keys")
      ->group(kGroup);
  add("--sliding-window", heads.sliding_window, kWindowLimits, "keys a query sees; 0: all (0)",
      Suffix::kKibi);
  add("--softcap", heads.softcap, kSoftcapLimits, "squeeze scores into ±X; 0: do not (0)")
      ->option_text("X");
  add("--page-size", layout.page_size, kAttendedLimits, "tokens in a page of the KV cache (64)",
      Suffix::kKibi);
  CLI::Option* const kv_dtype = add_kv_dtype_option(command, layout.kv_dtype)->group(kGroup);
  add_attention_dtype_option(command, options.benchmark.device)->needs(kv_dtype)->group(kGroup);
  command
      .add_flag("--contiguous", layout.contiguous,
                "one page per sequence, in order, to see what paging costs")
      ->group(kGroup);
}

void add_measurement_options(CLI::App& command, Options& options) {
  constexpr const char* kGroup = "Measurement";
  bool& time_standard = options.benchmark.time_standard;
  command
      .add_flag_callback(
          "--no-standard", [&time_standard] { time_standard = false; },
          "leave standard attention out")
      ->group(kGroup);
  EngineOptions& device = options.benchmark.device;
  command
      .add_flag_callback(
          "--portable", [&device] { device.portable_kernels = true; },
          "the kernels of every GPU, also where faster ones exist")
      ->group(kGroup);
  add_number(command, "--repetitions", options.benchmark.repetitions, kTimedRunLimits,
             "times each case is measured; 0: run and check once, for a profiler (15)")
      ->group(kGroup);
  command.add_option("--json", options.json_path, "write the report as JSON; - for stdout")
      ->option_text("FILE")
      ->group(kGroup);
}

}  // namespace

void add_bench_attention(CLI::App& bench, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      *bench.add_subcommand("attention", "time the attention kernels; needs no model");
  add_case_options(command, *options);
  add_measurement_options(command, *options);
  add_device_options(command, options->benchmark.device);
  add_console_options(command, invocation.console);
  command.footer(
      "Times attention over a paged KV cache of random numbers and beside it standard attention,\n"
      "which writes the whole matrix of scores to memory: two matrix products by the vendor's\n"
      "library and a softmax between them. Before a case is timed, rows of its result are "
      "compared\n"
      "with an exact computation; a wrong result is an error and is not timed. With --kv-dtype "
      "fp8\n"
      "the cache is float8_e4m3 with scales, and standard attention, which cannot read it, is\n"
      "left out.\n"
      "\n"
      "Without --lengths and --decode-cases a choice of both is timed, else only what is named.\n"
      "Short prompts are batched up to 8192 tokens (1024 on the CPU). Times are medians, ± half "
      "the\n"
      "range. TFLOP/s counts both matrix products, half of the square when causal; GB/s counts "
      "keys\n"
      "and values once. \"of matmul\" and \"of memory\" compare them with a large matrix product "
      "and\n"
      "with reading a large buffer, measured in the same run. scratch is the memory a way of\n"
      "computing needs beyond queries, keys, values and outputs; ratio is standard / tessera.\n"
      "\n"
      "Examples:\n"
      "  tessera bench attention\n"
      "  tessera bench attention --lengths 8k,128k --no-standard\n"
      "  tessera bench attention --decode-cases 1x32k,64x4k --head-dim 64 --json -");
  command.callback([options, &invocation] {
    check(*options);
    invocation.run = [options](const Console& console) {
      return run_bench_attention(*options, console);
    };
  });
}

}  // namespace tessera
