// How much of a batch has been computed, in tokens, judged by the requests that have begun.
//
// Requests differ by a factor of a hundred, and the longest are begun first, so that the number of
// those that are done says little about how long the others will take.
#pragma once

#include <cstdint>
#include <optional>

namespace tessera {

class TokenForecast {
 public:
  // `limit` is always the most tokens of a choice of the request's answer, 0 when nobody said.

  // A request is to be computed.
  void add(int64_t limit);
  // A request that was added turns out to be an error.
  void leave_out(int64_t limit);
  // A request that was added is prepared.
  void begin(int64_t limit, int64_t prompt_tokens, int64_t num_choices);
  // A request that was begun has been answered, with so many tokens in all choices together.
  void end(int64_t limit, int64_t num_choices, int64_t generated_tokens);

  // The part that is done when so many tokens of prompts and of answers have been computed: answers
  // are expected to be as long, beside their limits, as those that have ended, and prompts that are
  // not prepared as long as those that are. Nothing where that does not tell.
  std::optional<double> part_done(int64_t prompt_tokens, int64_t generated_tokens) const;

 private:
  // Answers with a limit and without.
  struct Answers {
    double limits = 0.0;     // tokens, of those with a limit together
    double unlimited = 0.0;  // how many have none

    void add(int64_t limit, double times);
  };

  // Tokens that open answers are still to get. Those that are already longer than was expected are
  // of the long ones, of which nothing but their length is known: they are expected to go on for as
  // long as they have been too long, to their limits at most.
  static double left_of(const Answers& open, double expected, double generated);

  Answers waiting_;  // of requests that are not prepared, a choice of each
  int64_t num_waiting_ = 0;
  Answers open_;  // of requests that have begun and not ended, all choices
  int64_t num_begun_ = 0;
  int64_t num_choices_ = 0;  // of those that have begun
  int64_t prompt_tokens_ = 0;
  Answers ended_;
  double limited_tokens_ = 0.0;    // of the answers that have ended and had a limit
  double unlimited_tokens_ = 0.0;  // and of those that had none
};

}  // namespace tessera
