// Measuring how fast a loaded model reads prompts and generates, against what the memory allows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace tessera {

// One row of the table.
struct BenchCase {
  int64_t batch_size = 1;
  int64_t prompt_length = 0;  // tokens of each sequence
  int64_t decode_length = 0;  // tokens generated after them
};

// Median of the repetitions and (largest - smallest) / median, which one repetition does not have.
struct Measurement {
  double median = 0.0;
  std::optional<double> spread;
};
Measurement summarize_repetitions(std::vector<double> values);

struct BenchResult {
  BenchCase bench_case;
  Measurement prefill_tokens_per_second;  // of all sequences together
  Measurement decode_tokens_per_second;   // of all sequences together
  uint64_t bytes_per_step = 0;            // that a decode step must read: weights and KV cache
  double bytes_per_second = 0.0;          // bytes_per_step at the median speed
};

// Throws Error unless the logits of a short prompt are finite and differ from each other: a model
// of zeros would be timed as happily as any other.
void require_sound_logits(Engine& engine);

// Times one case after one warm-up. Prompts are random tokens from a fixed seed; sampling is greedy
// and goes on past the end of an answer. Throws Interrupted on Ctrl-C.
BenchResult run_bench_case(Engine& engine, const BenchCase& bench_case, int64_t repetitions);

}  // namespace tessera
