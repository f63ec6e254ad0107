#include "engine/options.h"

#include <cmath>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// NaN fails every comparison, hence the check.
void check_range(std::string_view field, double value, double low, double high) {
  CHECK(value >= low && value <= high, field, " must be in ", low, "..", high, ", got ", value);
}

}  // namespace

void validate(const EngineOptions& options) {
  CHECK(!options.model.empty(), "no model given");
  CHECK(options.context_size >= 0 && options.context_size <= (int64_t{1} << 30),
        "context size must be in 0..", int64_t{1} << 30, ", got ", options.context_size);
  CHECK(options.max_sequences >= 1 && options.max_sequences <= 4096,
        "the number of sequences must be in 1..4096, got ", options.max_sequences);
  CHECK(options.page_size >= 16 && options.page_size <= 256 &&
            (options.page_size & (options.page_size - 1)) == 0,
        "page size must be 16, 32, 64, 128 or 256, got ", options.page_size);
  CHECK(options.prefill_chunk >= 0 && options.prefill_chunk <= 65536,
        "prefill chunk must be in 0..65536, got ", options.prefill_chunk);
  CHECK(options.num_threads >= 0 && options.num_threads <= 1024, "threads must be in 0..1024, got ",
        options.num_threads);
  CHECK(options.cuda_index >= 0, "CUDA device index must not be negative, got ",
        options.cuda_index);
  CHECK(options.compute_dtype == DType::kBFloat16 || options.compute_dtype == DType::kFloat16,
        "compute dtype must be bfloat16 or float16, got ", to_string(options.compute_dtype));
}

void validate(const SamplingParams& params) {
  if (params.temperature != 0.0) check_range("temperature", params.temperature, 0.01, 100.0);
  CHECK(params.top_k >= 0 && params.top_k <= (int64_t{1} << 30), "top_k must be in 0..",
        int64_t{1} << 30, ", got ", params.top_k);
  check_range("top_p", params.top_p, 0.0, 1.0);
  CHECK(params.top_p > 0.0, "top_p must be greater than 0, got ", params.top_p);
  check_range("min_p", params.min_p, 0.0, 1.0);
  check_range("repetition_penalty", params.repetition_penalty, 0.01, 100.0);
  check_range("presence_penalty", params.presence_penalty, -2.0, 2.0);
  check_range("frequency_penalty", params.frequency_penalty, -2.0, 2.0);
  CHECK(params.penalty_window >= 0, "penalty window must not be negative, got ",
        params.penalty_window);
  CHECK(params.max_tokens >= 0 && params.max_tokens <= (int64_t{1} << 30),
        "max_tokens must be in 0..", int64_t{1} << 30, ", got ", params.max_tokens);
  for (const std::string& stop : params.stop) CHECK(!stop.empty(), "a stop string is empty");
}

bool has_penalty(const SamplingParams& params) {
  return params.repetition_penalty != 1.0 || params.frequency_penalty != 0.0 ||
         params.presence_penalty != 0.0;
}

SamplingParams default_sampling(const GenerationConfig& generation) {
  SamplingParams params;
  if (generation.do_sample.value_or(false)) {
    params.temperature = generation.temperature.value_or(1.0);
    params.top_k = generation.top_k.value_or(0);
    params.top_p = generation.top_p.value_or(1.0);
    params.min_p = generation.min_p.value_or(0.0);
  }
  params.repetition_penalty = generation.repetition_penalty.value_or(1.0);
  return params;
}

}  // namespace tessera
