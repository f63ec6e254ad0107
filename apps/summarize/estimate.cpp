#include "apps/summarize/estimate.h"

#include <algorithm>

#include "apps/process/signals.h"

namespace tessera {
namespace {

// What devices of each type usually reach. CPUs differ tenfold.
constexpr DeviceRates kCudaRates = {
    .product_operations = 3e14, .attention_operations = 3e14, .read_bytes = 2e12};
constexpr DeviceRates kCpuRates = {
    .product_operations = 2e11, .attention_operations = 2e11, .read_bytes = 2e10};

// What is over sooner is not worth measuring the device, which takes half a second.
constexpr double kShortSeconds = 3.0;

int64_t calls_at_once(const Engine& engine, const SummaryPlan& plan) {
  const MemoryPlan& memory = engine.memory_plan();
  const int64_t held =
      memory.num_pages * memory.page_size / std::max<int64_t>(plan.longest_call(), 1);
  return std::clamp<int64_t>(
      held, 1, std::min(static_cast<int64_t>(plan.calls.size()), memory.limits.max_sequences));
}

// Of the longest calls.
uint64_t kv_bytes(const Engine& engine, const SummaryPlan& plan, int64_t num_calls) {
  const MemoryPlan& memory = engine.memory_plan();
  const int64_t tokens =
      std::min(num_calls * plan.longest_call(), memory.num_pages * memory.page_size);
  return static_cast<uint64_t>(tokens) * memory.kv_bytes_per_token;
}

// Two operations for each weight, of 16 bits, and of attention two for each element of keys and of
// values that a token looks at: half of its call on average.
double reading_seconds(const Engine& engine, const SummaryPlan& plan, const DeviceRates& rates) {
  const ModelConfig& config = engine.folder().config;
  const double looked_at = static_cast<double>(plan.longest_call()) / 2;
  const auto elements = static_cast<double>(config.num_layers * config.num_heads * config.head_dim);
  return static_cast<double>(plan.prompt_tokens()) *
         (static_cast<double>(engine.weight_bytes_per_token()) / rates.product_operations +
          4 * elements * looked_at / rates.attention_operations);
}

// Every step reads the weights, and the keys and values of the calls that run together.
double answering_seconds(const Engine& engine, const SummaryPlan& plan, const DeviceRates& rates) {
  const auto step_seconds = [&](int64_t at_once) {
    return static_cast<double>(engine.weight_bytes_per_token() + kv_bytes(engine, plan, at_once)) /
           rates.read_bytes;
  };
  const int64_t at_once = calls_at_once(engine, plan);
  const int64_t turns = ceil_divide(static_cast<int64_t>(plan.calls.size()), at_once);
  double seconds = static_cast<double>(turns) * step_seconds(at_once);
  if (const auto [rounds, calls] = plan.merges; rounds > 0) {
    const int64_t merged_at_once = std::min(at_once, ceil_divide(calls, rounds));
    seconds += static_cast<double>(rounds) * step_seconds(merged_at_once);
  }
  return static_cast<double>(plan.answer_tokens) * seconds;
}

Forecast forecast_with(const Engine& engine, const SummaryPlan& plan, const DeviceRates& rates) {
  return {.reading_seconds = reading_seconds(engine, plan, rates),
          .answering_seconds = answering_seconds(engine, plan, rates)};
}

}  // namespace

uint64_t kv_bytes_needed(const Engine& engine, const SummaryPlan& plan) {
  return kv_bytes(engine, plan, calls_at_once(engine, plan));
}

Forecast make_forecast(const Engine& engine, const EngineOptions& options,
                       const SummaryPlan& plan) {
  if (engine.device() != DeviceType::kCpu) return forecast_with(engine, plan, kCudaRates);
  const Forecast usual = forecast_with(engine, plan, kCpuRates);
  if (usual.reading_seconds + usual.answering_seconds < kShortSeconds) return usual;
  const DType weights = engine.folder().config.dtype.value_or(DType::kFloat32);
  return forecast_with(engine, plan, measure_device_rates(options, weights, is_interrupted));
}

}  // namespace tessera
