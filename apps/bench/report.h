// What tessera bench tells: a header and a table for people, JSON for programs and --compare.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/answer/load_report.h"
#include "apps/bench/case.h"
#include "engine/engine.h"

namespace tessera {

// What a report says of the model that was timed.
struct BenchedModel {
  BenchedModel(const Engine& engine, const EngineOptions& options);

  std::string path;
  std::string device;
  std::string load;                 // what loading took
  uint64_t allocated_bytes;         // on the device
  uint64_t weight_bytes_per_token;  // that a step reads
  nlohmann::ordered_json engine;    // engine_json()
};

struct BenchReport {
  std::vector<BenchResult> results;
  int64_t repetitions = 0;
  FirstToken first_token;  // of a prompt of a few tokens, right after the load
  uint64_t peak_resident_bytes = 0;
  double read_bandwidth = 0.0;  // bytes per second
};

// Model, device, load and memory, a line each.
std::string bench_header(const BenchedModel& model, const BenchReport& report);

// A line per case.
std::string bench_table(const BenchReport& report);

nlohmann::ordered_json bench_json(const BenchedModel& model, const BenchReport& report);

// Text behind so many spaces, one at least, that together they take `width` columns.
std::string right_aligned(const std::string& text, int width);

// A line of right-aligned columns.
std::string bench_row(std::initializer_list<std::string> cells);

// "211.4 ±0.3%": the median and half the range.
std::string measurement_text(const Measurement& measurement);

// Of it " ±0.3%"; nothing where there was one repetition.
std::string spread_text(const Measurement& measurement);

// {"median": 211.4, "spread": 0.006}, the spread being null where there was one repetition.
nlohmann::ordered_json measurement_json(const Measurement& measurement);

}  // namespace tessera
