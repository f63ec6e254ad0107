#include "apps/bench/attention_report.h"

#include <array>

#include "apps/bench/case.h"
#include "apps/bench/report.h"
#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kAbsent = "-";

constexpr int kNumColumns = 10;

std::string row(const std::array<std::string, kNumColumns>& cells) {
  constexpr std::array<int, kNumColumns> kWidths = {8, 6, 18, 9, 10, 10, 18, 9, 10, 7};
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += right_aligned(cells[i], kWidths[i]);
  return line + "\n";
}

std::string time_text(const AttentionTiming& timing) {
  if (!timing.problem.empty()) return timing.problem;
  if (timing.seconds.empty()) return kAbsent;
  const Measurement measurement = summarize_repetitions(timing.seconds);
  const double median = measurement.median;
  const std::string text =
      median < 1e-3 ? fixed(median * 1e6, 1) + " us" : fixed(median * 1e3, 2) + " ms";
  return text + spread_text(measurement);
}

// Amount per second in units of `unit`.
std::string rate_text(const AttentionTiming& timing, double amount, double unit) {
  if (timing.seconds.empty()) return kAbsent;
  const double rate = amount / summarize_repetitions(timing.seconds).median / unit;
  return fixed(rate, rate < 10 ? 2 : 1);
}

std::string share_text(const AttentionTiming& timing, double amount, double ceiling) {
  if (timing.seconds.empty() || ceiling == 0.0) return kAbsent;
  return fixed(100 * amount / summarize_repetitions(timing.seconds).median / ceiling, 1) + "%";
}

std::string memory_text(const AttentionTiming& timing) {
  if (!timing.problem.empty() && timing.scratch_bytes == 0) return kAbsent;
  return human_bytes(timing.scratch_bytes);
}

std::string ratio_text(const AttentionResult& result) {
  if (result.paged.seconds.empty() || result.standard.seconds.empty()) return kAbsent;
  return fixed(summarize_repetitions(result.standard.seconds).median /
                   summarize_repetitions(result.paged.seconds).median,
               2);
}

std::string result_row(const AttentionReport& report, const AttentionResult& result) {
  const bool is_decode = result.attention_case.is_decode();
  const double amount = is_decode ? result.kv_bytes : result.flops;
  const double unit = is_decode ? 1e9 : 1e12;
  const double ceiling = is_decode ? report.read_bandwidth : report.matmul_rate;
  return row({std::to_string(result.attention_case.context_length),
              std::to_string(result.attention_case.batch_size), time_text(result.paged),
              rate_text(result.paged, amount, unit), share_text(result.paged, amount, ceiling),
              memory_text(result.paged), time_text(result.standard),
              rate_text(result.standard, amount, unit), memory_text(result.standard),
              ratio_text(result)});
}

std::string table(const AttentionReport& report, bool is_decode) {
  std::string rows;
  for (const AttentionResult& result : report.results) {
    if (result.attention_case.is_decode() == is_decode) rows += result_row(report, result);
  }
  if (rows.empty()) return "";
  const char* const rate = is_decode ? "GB/s" : "TFLOP/s";
  return concat("\n", is_decode ? "decode, one query token a sequence\n" : "prefill\n",
                row({"context", "batch", "tessera", rate, is_decode ? "of memory" : "of matmul",
                     "scratch", "standard", rate, "scratch", "ratio"}),
                rows);
}

OrderedJson timing_json(const AttentionTiming& timing, const AttentionResult& result) {
  OrderedJson object = OrderedJson::object();
  if (!timing.problem.empty()) object["problem"] = timing.problem;
  object["scratch_bytes"] = timing.scratch_bytes;
  if (!timing.problem.empty()) return object;
  object["largest_error"] = timing.largest_error;
  if (timing.seconds.empty()) return object;
  const Measurement measurement = summarize_repetitions(timing.seconds);
  object["seconds"] = measurement_json(measurement);
  object["seconds"]["all"] = timing.seconds;
  object["flops_per_second"] = result.flops / measurement.median;
  object["kv_bytes_per_second"] = result.kv_bytes / measurement.median;
  return object;
}

}  // namespace

std::string attention_text(const AttentionReport& report) {
  const AttentionHeads& heads = report.options.heads;
  std::string text = concat("device       ", report.device);
  if (report.matmul_rate > 0) {
    text += concat(
        "\nlimits       ", fixed(report.matmul_rate / 1e12, report.matmul_rate < 1e13 ? 2 : 1),
        " TFLOP/s of matrix products, reads ", fixed(report.read_bandwidth / 1e9, 1), " GB/s");
  }
  text += concat("\nattention    ", counted(heads.num_heads, "head"), ", ",
                 counted(heads.num_kv_heads, "KV head"), " of ", heads.head_dim, ", ",
                 to_string(report.dtype), heads.causal ? ", causal" : ", not causal");
  if (heads.sliding_window > 0) text += concat(", window of ", heads.sliding_window);
  if (heads.softcap > 0) text += concat(", softcap ", heads.softcap);
  const PageLayout& layout = report.options.layout;
  text += concat("\npages        ", layout.kv_dtype == KvDType::kFloat8E4M3 ? "float8_e4m3, " : "",
                 layout.contiguous
                     ? "one per sequence, in order"
                     : concat(counted(layout.page_size, "token"), " each, in random order"),
                 "\n");
  return text + table(report, /*is_decode=*/false) + table(report, /*is_decode=*/true);
}

OrderedJson attention_json(const AttentionReport& report) {
  const AttentionHeads& heads = report.options.heads;
  const PageLayout& layout = report.options.layout;
  OrderedJson object = {{"version", TESSERA_VERSION},
                        {"device", report.device},
                        {"dtype", to_string(report.dtype)},
                        {"kv_dtype", to_string(stored_dtype(layout.kv_dtype, report.dtype))},
                        {"num_heads", heads.num_heads},
                        {"num_kv_heads", heads.num_kv_heads},
                        {"head_dim", heads.head_dim},
                        {"causal", heads.causal},
                        {"sliding_window", heads.sliding_window},
                        {"softcap", heads.softcap},
                        {"page_size", layout.page_size},
                        {"contiguous", layout.contiguous},
                        {"repetitions", report.options.repetitions},
                        {"matmul_flops_per_second", report.matmul_rate},
                        {"read_bytes_per_second", report.read_bandwidth},
                        {"results", OrderedJson::array()}};
  for (const AttentionResult& result : report.results) {
    const AttentionCase& attention_case = result.attention_case;
    OrderedJson entry = {{"kind", attention_case.is_decode() ? "decode" : "prefill"},
                         {"batch_size", attention_case.batch_size},
                         {"query_length", attention_case.query_length},
                         {"context_length", attention_case.context_length},
                         {"flops", result.flops},
                         {"kv_bytes", result.kv_bytes},
                         {"tessera", timing_json(result.paged, result)},
                         {"standard", timing_json(result.standard, result)}};
    object["results"].push_back(std::move(entry));
  }
  return object;
}

}  // namespace tessera
