// tessera bench --compare: this run beside an earlier one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/bench/case.h"
#include "apps/bench/report.h"
#include "engine/engine.h"

namespace tessera {

// What an earlier run wrote with --json, as far as comparing needs it.
struct BenchBaseline {
  std::string path;  // of the file
  std::string model;
  std::string device;
  std::string dtype;
  uint64_t weights_bytes = 0;
  std::vector<BenchResult> results;
};

// Throws Error naming the file and the field when it is not such a report, or one of a single
// repetition, which has no spread.
BenchBaseline read_baseline(const std::string& path, const Console& console);

// Throws Error, with both sides, when the runs do not measure the same: another model (the last
// part of its path, or the size of its weights), device or number format, or other cases.
void require_comparable(const BenchBaseline& baseline, const Engine& engine,
                        const EngineOptions& options, std::span<const BenchCase> cases);

// Two lines per case, prefill and decode: before, now, change, verdict.
std::string comparison_table(const BenchBaseline& baseline, const BenchReport& report);

enum class Verdict : uint8_t { kSlower, kSame, kFaster };

// Speeds differ when their ratio is further from 1 than the repetitions of either run spread. Both
// have a spread.
Verdict compare_speeds(const Measurement& before, const Measurement& now);

}  // namespace tessera
