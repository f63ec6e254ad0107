#include "apps/summarize/estimate.h"

#include <algorithm>

namespace tessera {
namespace {

// What a device of each type usually reaches in prefill, and reads in decode.
struct UsualRates {
  double operations_per_second;
  double bytes_per_second;
};
constexpr UsualRates kCudaRates = {.operations_per_second = 3e14, .bytes_per_second = 2e12};
constexpr UsualRates kCpuRates = {.operations_per_second = 1e11, .bytes_per_second = 2e10};

int64_t calls_at_once(const Engine& engine, const SummaryPlan& plan) {
  const MemoryPlan& memory = engine.memory_plan();
  const int64_t held =
      memory.num_pages * memory.page_size / std::max<int64_t>(plan.longest_call(), 1);
  return std::clamp<int64_t>(
      held, 1, std::min(static_cast<int64_t>(plan.calls.size()), memory.limits.max_sequences));
}

// Two for each weight of 16 bits, and of attention two for each element of keys and of values that
// a token looks at: half of its call on average.
double prefill_operations(const Engine& engine, const SummaryPlan& plan) {
  const ModelConfig& config = engine.folder().config;
  const auto tokens = static_cast<double>(plan.prompt_tokens());
  const double looked_at = static_cast<double>(plan.longest_call()) / 2;
  const auto elements = static_cast<double>(config.num_layers * config.num_heads * config.head_dim);
  return tokens * (static_cast<double>(engine.weight_bytes_per_token()) + 4 * elements * looked_at);
}

// Of one step of the calls that run together.
double step_bytes(const Engine& engine, const SummaryPlan& plan) {
  return static_cast<double>(engine.weight_bytes_per_token()) +
         static_cast<double>(kv_bytes_needed(engine, plan));
}

}  // namespace

uint64_t kv_bytes_needed(const Engine& engine, const SummaryPlan& plan) {
  const auto tokens = std::min(calls_at_once(engine, plan) * plan.longest_call(),
                               engine.memory_plan().num_pages * engine.memory_plan().page_size);
  return static_cast<uint64_t>(tokens) * engine.memory_plan().kv_bytes_per_token;
}

double estimated_seconds(const Engine& engine, const SummaryPlan& plan) {
  const UsualRates rates = engine.device() == DeviceType::kCpu ? kCpuRates : kCudaRates;
  const int64_t at_once = calls_at_once(engine, plan);
  const int64_t turns =
      (static_cast<int64_t>(plan.calls.size()) + at_once - 1) / at_once + plan.merges.rounds;
  return prefill_operations(engine, plan) / rates.operations_per_second +
         static_cast<double>(turns * plan.answer_tokens) * step_bytes(engine, plan) /
             rates.bytes_per_second;
}

}  // namespace tessera
