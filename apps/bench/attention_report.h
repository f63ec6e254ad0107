// The results of `tessera bench attention`, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/benchmark/attention_benchmark.h"

namespace tessera {

struct AttentionReport {
  AttentionBenchmarkOptions options;
  std::string device;
  DType dtype = DType::kFloat32;
  double matmul_rate = 0.0;     // floating-point operations per second; 0: not measured
  double read_bandwidth = 0.0;  // bytes per second; 0: not measured
  std::vector<AttentionResult> results;
};

// A header and a table of prompts and one of decoding, whichever has rows.
std::string attention_text(const AttentionReport& report);

// Times in seconds, sizes in bytes, rates in units per second.
nlohmann::ordered_json attention_json(const AttentionReport& report);

}  // namespace tessera
