// Whether drafts pay: how often those of an answer have been right, against what a step with them
// costs. Counts and constants, no clock, so that the same request has the same steps every time.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

// What steps cost, in units of a step without drafts of one sequence.
struct DraftCosts {
  double step = 0.0;   // added by drafts to a step, however many they are
  double token = 0.0;  // added by each draft
  double wait = 0.0;   // added when a step is not launched before the last one's tokens are known
};

// On a CPU as measured with a model of 22 MB on two cores with AVX-512: larger ones, which wait for
// memory, gain more than is supposed. On a GPU a step with drafts runs in one kernel, as plain
// steps of up to 8 sequences do, or layer by layer; what each costs is measured in
// docs/experiments/prompt-lookup.md. Layer by layer more is supposed, because small models lose
// more and because text without repeats may then lose 2 % at most. What waiting costs is supposed.
inline constexpr DraftCosts kCpuDraftCosts = {.step = 0.1, .token = 0.15};
inline constexpr DraftCosts kCudaDraftCosts = {.step = 0.4, .token = 0.01, .wait = 0.1};
inline constexpr DraftCosts kOneKernelDraftCosts = {.step = 0.06, .token = 0.02, .wait = 0.1};

class DraftGain {
 public:
  explicit DraftGain(const DraftCosts& costs) : costs_(costs) {}

  // Records whether the text went on as it did behind an earlier occurrence of its last
  // `match_length` tokens. Called for every token, whether it was a draft or only could have been.
  void count(int64_t match_length, bool was_right);

  // How many drafts behind such a match give the most tokens per time, at most `most`; 0: drafts do
  // not pay. The step has num_sequences sequences, for all of which it takes longer.
  int64_t best_count(int64_t match_length, int64_t most, int64_t num_sequences) const;

  // Whether it pays to wait for the token behind such a match, to draft those after it.
  bool is_worth_waiting(int64_t match_length, int64_t most, int64_t num_sequences) const;

 private:
  // Matches of this many tokens and more are alike.
  static constexpr int64_t kLongMatch = 8;

  struct Best {
    int64_t count = 0;
    double saved = 0.0;  // steps without drafts
  };
  Best best(int64_t match_length, int64_t most, int64_t num_sequences) const;
  double chance(int64_t match_length) const;

  DraftCosts costs_;
  // The chance that the next token is right, by the length of the match. These are the first
  // guesses. Measured, from two tokens on: 0.5, 0.75 and then 0.6 to 0.7 in the demo model's
  // summaries, 0.7 and then 0.9 in those that quote (docs/experiments/prompt-lookup.md). Short
  // matches begin below that, because in text without repeats they are seldom right.
  std::array<double, kLongMatch + 1> chances_ = {0.0, 0.0, 0.4, 0.5, 0.6, 0.6, 0.6, 0.7, 0.8};
};

}  // namespace tessera
