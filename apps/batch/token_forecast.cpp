#include "apps/batch/token_forecast.h"

#include <algorithm>
#include <cmath>

namespace tessera {

double TokenForecast::left_of(const Answers& open, double expected, double generated) {
  const double left = std::abs(expected - generated);
  return open.unlimited > 0.0 ? left : std::min(left, std::max(open.limits - generated, 0.0));
}

void TokenForecast::Answers::add(int64_t limit, double times) {
  if (limit > 0) {
    limits += static_cast<double>(limit) * times;
  } else {
    unlimited += times;
  }
}

void TokenForecast::add(int64_t limit) {
  waiting_.add(limit, 1.0);
  ++num_waiting_;
}

void TokenForecast::leave_out(int64_t limit) {
  waiting_.add(limit, -1.0);
  --num_waiting_;
}

void TokenForecast::begin(int64_t limit, int64_t prompt_tokens, int64_t num_choices) {
  leave_out(limit);
  open_.add(limit, static_cast<double>(num_choices));
  ++num_begun_;
  num_choices_ += num_choices;
  prompt_tokens_ += prompt_tokens;
}

void TokenForecast::end(int64_t limit, int64_t num_choices, int64_t generated_tokens) {
  const auto times = static_cast<double>(num_choices);
  open_.add(limit, -times);
  ended_.add(limit, times);
  (limit > 0 ? limited_tokens_ : unlimited_tokens_) += static_cast<double>(generated_tokens);
}

std::optional<double> TokenForecast::part_done(int64_t prompt_tokens,
                                               int64_t generated_tokens) const {
  if (num_begun_ == 0 || prompt_tokens + generated_tokens == 0) return std::nullopt;
  const auto begun = static_cast<double>(num_begun_);
  const double choices = static_cast<double>(num_choices_) / begun;  // of a request
  const Answers waiting = {.limits = choices * waiting_.limits,
                           .unlimited = choices * waiting_.unlimited};
  const bool has_unlimited = open_.unlimited + waiting.unlimited > 0.0;
  if (has_unlimited && ended_.unlimited == 0.0) return std::nullopt;

  const double of_limit = ended_.limits > 0.0 ? limited_tokens_ / ended_.limits : 1.0;
  const double mean = has_unlimited ? unlimited_tokens_ / ended_.unlimited : 0.0;
  const auto expected = [&](const Answers& answers) {
    return of_limit * answers.limits + mean * answers.unlimited;
  };
  const double generated_of_open =
      static_cast<double>(generated_tokens) - limited_tokens_ - unlimited_tokens_;
  const double answers_left =
      expected(waiting) + left_of(open_, expected(open_), generated_of_open);
  const double mean_prompt = static_cast<double>(prompt_tokens_) / begun;
  const double prompts_left = static_cast<double>(prompt_tokens_ - prompt_tokens) +
                              mean_prompt * static_cast<double>(num_waiting_);
  const auto done = static_cast<double>(prompt_tokens + generated_tokens);
  return done / (done + answers_left + std::max(prompts_left, 0.0));
}

}  // namespace tessera
