#include "apps/batch/token_forecast.h"

#include <algorithm>

namespace tessera {

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
  const double limits = open_.limits + choices * waiting_.limits;
  const double unlimited = open_.unlimited + choices * waiting_.unlimited;
  if (unlimited > 0.0 && ended_.unlimited == 0.0) return std::nullopt;

  const double of_limit = ended_.limits > 0.0 ? limited_tokens_ / ended_.limits : 1.0;
  const double mean = unlimited > 0.0 ? unlimited_tokens_ / ended_.unlimited : 0.0;
  const double generated_of_open =
      static_cast<double>(generated_tokens) - limited_tokens_ - unlimited_tokens_;
  const double answers_left = of_limit * limits + mean * unlimited - generated_of_open;
  const double mean_prompt = static_cast<double>(prompt_tokens_) / begun;
  const double prompts_left = static_cast<double>(prompt_tokens_ - prompt_tokens) +
                              mean_prompt * static_cast<double>(num_waiting_);
  const auto done = static_cast<double>(prompt_tokens + generated_tokens);
  return done / (done + std::max(answers_left, 0.0) + std::max(prompts_left, 0.0));
}

}  // namespace tessera
