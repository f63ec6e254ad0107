#include "apps/batch/progress.h"

#include <algorithm>

#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

constexpr auto kWindow = 10s;

std::string percent(double part) { return fixed(100.0 * part, 0) + " %"; }

std::string rate(int64_t tokens, double seconds) {
  if (seconds <= 0.0) return "?";
  return human_count(static_cast<int64_t>(static_cast<double>(tokens) / seconds));
}

std::string text_of(const ServingState& state) {
  return concat(", ", state.running, " running, ", state.waiting, " waiting, KV ",
                percent(state.kv_use), ", prefix hits ", percent(state.prefix_hits));
}

}  // namespace

BatchProgress::BatchProgress(const Console& console) : bar_(console, "batch") {
  samples_.push_back({.time = Clock::now()});
}

void BatchProgress::show(const BatchCounts& counts, int64_t prompt_tokens, int64_t generated_tokens,
                         std::optional<double> part_done,
                         const std::optional<ServingState>& state) {
  const Sample now = {Clock::now(), prompt_tokens, generated_tokens};
  add(now);
  const Sample& before = samples_.front();
  const double seconds = std::chrono::duration<double>(now.time - before.time).count();
  const double fraction =
      static_cast<double>(counts.done()) / static_cast<double>(std::max<int64_t>(counts.total, 1));
  // The most important first, and those so short that 80 columns hold them beside the bar: what
  // does not fit is left out from the right.
  bar_.update(fraction,
              concat(counts.done(), '/', counts.total, ", ",
                     rate(now.generated_tokens - before.generated_tokens, seconds), " tok/s, ETA ",
                     eta(counts, part_done), ", ", counted(counts.errors, "error"), ", prompts ",
                     rate(now.prompt_tokens - before.prompt_tokens, seconds), " tok/s",
                     state ? text_of(*state) : ""));
}

void BatchProgress::add(const Sample& now) {
  samples_.push_back(now);
  while (samples_.size() > 2 && now.time - samples_[1].time > kWindow) samples_.pop_front();
}

std::string BatchProgress::eta(const BatchCounts& counts, std::optional<double> part_done) const {
  const int64_t done_now = counts.answered + counts.errors;
  const int64_t all_now = counts.total - counts.skipped;
  const double part_of_requests =
      static_cast<double>(done_now) / static_cast<double>(std::max<int64_t>(all_now, 1));
  return time_.text(part_done.value_or(part_of_requests));
}

}  // namespace tessera
