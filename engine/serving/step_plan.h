// A step while the scheduler fills it: what is in it, and what there is room for.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/step_limits.h"
#include "engine/serving/request.h"

namespace tessera {

class StepPlan {
 public:
  explicit StepPlan(const StepLimits& limits) : limits_(limits), tokens_left_(limits.max_tokens) {}

  // The next tokens of the sequence, as many as there is room for; none when there is no room. The
  // last one is left for a later step if the draw after it would list too many tokens.
  ScheduledSequence next_tokens(const Request& request) const;

  void add(const ScheduledSequence& scheduled);

  // From now on tokens of prompts are added.
  void begin_prompts();

  bool is_full() const { return tokens_left_ == 0; }

  // The step, sequences with one token first: to the kernels a last chunk of one token is a decode.
  // Those of them that have the same pages in front stand together.
  std::vector<ScheduledSequence> take();

 private:
  // Tokens that its penalties list at most when its next token is drawn.
  int64_t penalized_tokens(const Request& request) const;

  const StepLimits& limits_;
  int64_t tokens_left_;
  int64_t penalized_tokens_ = 0;
  std::vector<ScheduledSequence> batch_;
};

}  // namespace tessera
