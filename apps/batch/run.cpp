#include "apps/batch/run.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "apps/batch/order.h"
#include "apps/batch/record.h"
#include "apps/process/signals.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

// How long requests are prepared before the first step, and before each other one at least; half of
// a step's time where that is longer.
constexpr auto kFirstPrepareTime = 10ms;
constexpr auto kLeastPrepareTime = 2ms;
// Sequences that wait in the engine for one to end, so that its place is taken in the next step.
constexpr int64_t kQueuedAhead = 32;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool has_reason(const FinishedRequest& finished, StopReason reason) {
  return std::ranges::any_of(finished.results, [&](const GenerationResult& result) {
    return result.stop_reason == reason;
  });
}

}  // namespace

BatchRun::BatchRun(Engine* engine, const BatchFiles& files, BatchDefaults defaults,
                   std::function<void(int64_t num_begun)> on_interrupt, const Console& console)
    : engine_(engine),
      files_(files),
      defaults_(std::move(defaults)),
      on_interrupt_(std::move(on_interrupt)),
      progress_(console),
      prepare_time_(kFirstPrepareTime) {
  if (engine == nullptr) return;
  in_flight_.emplace(*engine, [this](bool has_begun) { return may_go_on(has_begun); });
}

BatchCounts BatchRun::run() {
  const Clock::time_point start = Clock::now();
  const std::vector<BatchItem>& items = files_.input.items();
  order_ = longest_first(items, defaults_.sampling.max_tokens.value_or(0));
  counts_.total = static_cast<int64_t>(items.size());
  for (const BatchItem& item : items) {
    if (!is_to_do(item)) {
      ++counts_.skipped;
    } else if (!item.is_problem()) {
      forecast_.add(limit_of(item));
    }
  }
  for (;;) {
    admit();
    if (in_flight_ && !in_flight_->is_empty()) {
      step();
    } else if (next_ == order_.size() || is_interrupted()) {
      break;
    }
  }
  if (is_interrupted()) tell_interrupt();
  files_.output.finish();
  progress_.clear();
  counts_.seconds = seconds_since(start);
  if (engine_ != nullptr) add_statistics(engine_->statistics());
  return counts_;
}

bool BatchRun::is_to_do(const BatchItem& item) const {
  return !files_.output.answers().contains(item.id);
}

int64_t BatchRun::limit_of(const BatchItem& item) const {
  return answer_limit(item, defaults_.sampling.max_tokens.value_or(0));
}

bool BatchRun::has_room() const {
  const int64_t wanted = engine_ == nullptr ? 1 : engine_->memory_plan().limits.max_sequences;
  return !in_flight_ || in_flight_->num_sequences() < wanted + kQueuedAhead;
}

void BatchRun::admit() {
  const Clock::time_point end = Clock::now() + prepare_time_;
  while (next_ < order_.size() && has_room() && !is_interrupted()) {
    const BatchItem& item = files_.input.items()[order_[next_]];
    try {
      if (is_to_do(item)) begin(item);
      ++next_;
    } catch (const Interrupted&) {  // the request has not begun
    }
    show_progress();
    if (Clock::now() >= end) return;
  }
}

void BatchRun::begin(const BatchItem& item) {
  auto line = files_.input.read(item);
  if (const auto* problem = std::get_if<BatchProblem>(&line)) return append_error(item, *problem);
  auto prepared = prepare(*engine_, item, std::get<BatchRequest>(std::move(line)), defaults_,
                          [this](uint64_t, uint64_t) {
                            throw_if_interrupted();
                            show_progress();
                          });
  if (const auto* problem = std::get_if<BatchProblem>(&prepared)) {
    forecast_.leave_out(limit_of(item));
    return append_error(item, *problem);
  }
  auto& request = std::get<PreparedRequest>(prepared);
  forecast_.begin(limit_of(item), static_cast<int64_t>(request.prompt.size()), request.num_choices);
  in_flight_->submit(std::move(request));
}

void BatchRun::append_error(const BatchItem& item, const BatchProblem& problem) {
  files_.output.append(error_record({item, problem.custom_id}, problem.code, problem.message));
  if (counts_.errors++ > 0 && counts_.first_error_line < item.line_number) return;
  counts_.first_error = problem.message;
  counts_.first_error_line = item.line_number;
}

void BatchRun::append_answer(const FinishedRequest& finished) {
  const PreparedRequest& request = finished.request;
  if (has_reason(finished, StopReason::kCancelled)) return;
  const GenerationResult& first = finished.results.front();
  const int64_t generated_tokens = finished.generated_tokens();
  ended_tokens_.prompt += first.prompt_tokens;
  ended_tokens_.generated += generated_tokens;
  forecast_.end(limit_of(request.item), request.num_choices, generated_tokens);
  for (const GenerationResult& result : finished.results) {
    if (result.stop_reason != StopReason::kNonFiniteLogits) continue;
    return append_error(request.item, {request.custom_id, "non_finite_logits", result.error});
  }
  files_.output.append(answer_record(finished, defaults_.model_name, engine_->tokenizer()));
  if (!request.left_out.ranges.empty()) ++counts_.shortened;
  ++counts_.answered;
  counts_.prompt_tokens += first.prompt_tokens;
  counts_.cached_prompt_tokens += first.cached_prompt_tokens;
  counts_.generated_tokens += generated_tokens;
  counts_.draws_with_run_seed = counts_.draws_with_run_seed || request.draws_with_run_seed;
  counts_.generation_seconds = seconds_since(*first_step_);
}

void BatchRun::add_statistics(const ServingStatistics& statistics) {
  counts_.preemptions = statistics.num_preemptions;
  counts_.longest_token_wait_seconds = statistics.longest_token_wait_seconds;
}

void BatchRun::step() {
  if (is_interrupted()) tell_interrupt();
  const Clock::time_point begin = Clock::now();
  first_step_ = first_step_.value_or(begin);
  engine_->step();
  prepare_time_ = std::max<Clock::duration>((Clock::now() - begin) / 2, kLeastPrepareTime);
  for (const FinishedRequest& finished : in_flight_->take_finished()) append_answer(finished);
  show_progress();
}

bool BatchRun::may_go_on(bool has_begun) {
  if (!is_interrupted()) return true;
  if (pending_signal() != SIGINT) return false;
  tell_interrupt();
  return has_begun;
}

void BatchRun::tell_interrupt() {
  if (std::exchange(has_told_interrupt_, true)) return;
  progress_.clear();
  on_interrupt_(in_flight_ ? in_flight_->num_begun() : 0);
}

void BatchRun::show_progress() {
  if (!progress_.is_due()) return;
  if (!in_flight_) return progress_.show(counts_, 0, 0, {}, {});
  const InFlight::Tokens tokens = in_flight_->tokens();
  const int64_t prompt_tokens = ended_tokens_.prompt + tokens.prompt;
  const int64_t generated_tokens = ended_tokens_.generated + tokens.generated;
  progress_.show(counts_, prompt_tokens, generated_tokens,
                 forecast_.part_done(prompt_tokens, generated_tokens), in_flight_->state());
}

}  // namespace tessera
