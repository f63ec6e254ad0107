#include "apps/bench/report.h"

#include <algorithm>

#include "apps/answer/stats.h"
#include "apps/terminal/graphemes.h"
#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

double share_of_memory(const BenchResult& result, const BenchReport& report) {
  return result.bytes_per_second / report.read_bandwidth;
}

}  // namespace

BenchedModel::BenchedModel(const Engine& engine, const EngineOptions& options)
    : path(engine.folder().path),
      device(engine.device_description()),
      load(engine.load_timings().text()),
      allocated_bytes(engine.allocated_bytes()),
      weight_bytes_per_token(engine.weight_bytes_per_token()),
      engine(engine_json(engine, options)) {}

std::string right_aligned(const std::string& text, int width) {
  const int num_spaces = std::max(width - display_width(text), 1);
  return std::string(static_cast<size_t>(num_spaces), ' ') + text;
}

std::string bench_row(std::initializer_list<std::string> cells) {
  constexpr int kColumnWidth = 13;
  std::string line;
  for (const std::string& cell : cells) line += right_aligned(cell, kColumnWidth);
  return line + "\n";
}

std::string measurement_text(const Measurement& measurement) {
  return fixed(measurement.median, 1) + spread_text(measurement);
}

std::string spread_text(const Measurement& measurement) {
  return measurement.spread ? concat(" ±", fixed(*measurement.spread * 50, 1), "%") : "";
}

OrderedJson measurement_json(const Measurement& measurement) {
  OrderedJson object = {{"median", measurement.median}, {"spread", nullptr}};
  if (measurement.spread) object["spread"] = *measurement.spread;
  return object;
}

std::string bench_header(const BenchedModel& model, const BenchReport& report) {
  return concat("model        ", model.path, "\ndevice       ", model.device, ", reads ",
                fixed(report.read_bandwidth / 1e9, 1), " GB/s\nload         ", model.load,
                "\nfirst token  ", report.first_token.text(), "\nmemory       ",
                human_bytes(model.allocated_bytes), ", process at most ",
                human_bytes(report.peak_resident_bytes), "\nweights      ",
                human_bytes(model.weight_bytes_per_token), " read a step\n\n");
}

std::string bench_table(const BenchReport& report) {
  std::string text = bench_row({"batch", "prompt", "decode", "prefill tok/s", "decode tok/s",
                                "read/step", "GB/s", "of memory"});
  for (const BenchResult& result : report.results) {
    const BenchCase& bench_case = result.bench_case;
    text +=
        bench_row({std::to_string(bench_case.batch_size), std::to_string(bench_case.prompt_length),
                   std::to_string(bench_case.decode_length),
                   measurement_text(result.prefill_tokens_per_second),
                   measurement_text(result.decode_tokens_per_second),
                   human_bytes(result.bytes_per_step), fixed(result.bytes_per_second / 1e9, 1),
                   fixed(100 * share_of_memory(result, report), 1) + "%"});
  }
  const bool exceeds_memory = std::ranges::any_of(
      report.results,
      [&report](const BenchResult& result) { return share_of_memory(result, report) > 1.0; });
  if (exceeds_memory) {
    text += "\nabove 100% of memory: much of what a step reads is still in the device's caches\n";
  }
  return text;
}

OrderedJson bench_json(const BenchedModel& model, const BenchReport& report) {
  OrderedJson object = model.engine;
  object["first_token_seconds"] = report.first_token.total_seconds;
  object["peak_resident_bytes"] = report.peak_resident_bytes;
  object["weight_bytes_per_token"] = model.weight_bytes_per_token;
  object["read_bytes_per_second"] = report.read_bandwidth;
  object["repetitions"] = report.repetitions;
  object["results"] = OrderedJson::array();
  for (const BenchResult& result : report.results) {
    object["results"].push_back(
        {{"batch_size", result.bench_case.batch_size},
         {"prompt_length", result.bench_case.prompt_length},
         {"decode_length", result.bench_case.decode_length},
         {"prefill_tokens_per_second", measurement_json(result.prefill_tokens_per_second)},
         {"decode_tokens_per_second", measurement_json(result.decode_tokens_per_second)},
         {"bytes_per_step", result.bytes_per_step},
         {"bytes_per_second", result.bytes_per_second},
         {"share_of_read_bandwidth", share_of_memory(result, report)}});
  }
  return object;
}

}  // namespace tessera
