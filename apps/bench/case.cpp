#include "apps/bench/case.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "apps/answer/stats.h"
#include "apps/process/signals.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<TokenId> random_prompt(const Engine& engine, int64_t length, uint64_t seed) {
  std::mt19937_64 generator(seed);
  const auto num_tokens = static_cast<uint64_t>(engine.tokenizer().size());
  std::vector<TokenId> tokens(static_cast<size_t>(length));
  for (TokenId& token : tokens) token = static_cast<TokenId>(generator() % num_tokens);
  return tokens;
}

// Seconds until all that has been submitted is done.
double seconds_to_finish(Engine& engine) {
  const Clock::time_point start = Clock::now();
  while (engine.step()) {
  }
  throw_if_interrupted();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Timing {
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;
};

// Two rounds over the same sequences, so that no step mixes prompts with decoding: the first ends
// with one token each; the second begins with it, and all its steps are decode steps.
Timing time_once(Engine& engine, const BenchCase& bench_case,
                 std::vector<std::vector<TokenId>> prompts) {
  std::vector<SequencePtr> sequences;
  for (size_t i = 0; i < prompts.size(); ++i) sequences.push_back(engine.create_sequence());
  SamplingParams params;
  params.ignore_eos = true;
  params.max_tokens = 1;
  const GenerationCallbacks callbacks = {.is_cancelled = is_interrupted};
  for (size_t i = 0; i < prompts.size(); ++i) {
    engine.submit(*sequences[i], prompts[i], params, callbacks);
  }
  Timing timing;
  timing.prefill_seconds = seconds_to_finish(engine);

  params.max_tokens = bench_case.decode_length;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<TokenId>& first = engine.result(*sequences[i]).tokens;
    prompts[i].insert(prompts[i].end(), first.begin(), first.end());
    engine.submit(*sequences[i], prompts[i], params, callbacks);
  }
  timing.decode_seconds = seconds_to_finish(engine);
  for (const SequencePtr& sequence : sequences) {
    const auto generated = static_cast<int64_t>(engine.result(*sequence).tokens.size());
    CHECK(generated == bench_case.decode_length, "generated ", counted(generated, "token"),
          " instead of ", bench_case.decode_length, ": ",
          finish_reason(engine.result(*sequence).stop_reason));
  }
  return timing;
}

}  // namespace

Measurement summarize_repetitions(std::vector<double> values) {
  CHECK(!values.empty(), "no repetitions to summarize");
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  Measurement measurement;
  measurement.median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  if (values.size() > 1) {
    measurement.spread = (values.back() - values.front()) / measurement.median;
  }
  return measurement;
}

void require_sound_logits(Engine& engine) {
  const std::vector<TokenId> prompt = random_prompt(engine, 8, /*seed=*/0);
  const std::vector<float> logits = engine.prompt_logits(prompt, is_interrupted);
  CHECK(std::all_of(logits.begin(), logits.end(), [](float value) { return std::isfinite(value); }),
        "refusing to time a model whose logits are not finite");
  CHECK(std::any_of(logits.begin(), logits.end(),
                    [&logits](float value) { return value != logits.front(); }),
        "refusing to time a model whose logits are all equal");
}

BenchResult run_bench_case(Engine& engine, const BenchCase& bench_case, int64_t repetitions) {
  std::vector<std::vector<TokenId>> prompts;
  for (int64_t i = 0; i < bench_case.batch_size; ++i) {
    prompts.push_back(
        random_prompt(engine, bench_case.prompt_length, static_cast<uint64_t>(i) + 1));
  }
  time_once(engine, bench_case, prompts);

  const auto prompt_tokens = static_cast<double>(bench_case.batch_size * bench_case.prompt_length);
  const auto decode_tokens = static_cast<double>(bench_case.batch_size * bench_case.decode_length);
  std::vector<double> prefill;
  std::vector<double> decode;
  for (int64_t i = 0; i < repetitions; ++i) {
    const Timing timing = time_once(engine, bench_case, prompts);
    prefill.push_back(prompt_tokens / timing.prefill_seconds);
    decode.push_back(decode_tokens / timing.decode_seconds);
  }

  BenchResult result;
  result.bench_case = bench_case;
  result.prefill_tokens_per_second = summarize_repetitions(std::move(prefill));
  result.decode_tokens_per_second = summarize_repetitions(std::move(decode));
  // Halfway through, a sequence holds its prompt and half of what it generates.
  const int64_t context_length = bench_case.prompt_length + bench_case.decode_length / 2;
  result.bytes_per_step = decode_step_bytes(engine, bench_case.batch_size, context_length);
  const double steps_per_second =
      result.decode_tokens_per_second.median / static_cast<double>(bench_case.batch_size);
  result.bytes_per_second = static_cast<double>(result.bytes_per_step) * steps_per_second;
  return result;
}

}  // namespace tessera
