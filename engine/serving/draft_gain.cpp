#include "engine/serving/draft_gain.h"

#include <algorithm>

namespace tessera {
namespace {

// How much of a chance the newest token decides. A 32nd for the longer matches gained nothing
// (docs/experiments/prompt-lookup.md).
constexpr double kNewestPart = 1.0 / 8;

}  // namespace

double DraftGain::chance(int64_t match_length) const {
  return chances_[static_cast<size_t>(std::min(match_length, kLongMatch))];
}

void DraftGain::count(int64_t match_length, bool was_right) {
  double& chance = chances_[static_cast<size_t>(std::min(match_length, kLongMatch))];
  chance += kNewestPart * ((was_right ? 1.0 : 0.0) - chance);
}

// A draft counts if all before it are right; each one makes the match longer. What drafts add to a
// step, all its sequences wait for. A step takes a token's time more for each further sequence, so
// that a draft adds a smaller part to a step of many.
DraftGain::Best DraftGain::best(int64_t match_length, int64_t most, int64_t num_sequences) const {
  const auto sequences = static_cast<double>(num_sequences);
  const double token_cost = costs_.token * sequences / (1.0 + costs_.token * (sequences - 1.0));
  Best best;
  double all_right = 1.0;
  double saved = -costs_.step * sequences;
  for (int64_t count = 1; count <= most; ++count) {
    all_right *= chance(match_length + count - 1);
    saved += all_right - token_cost;
    if (saved > best.saved) best = {.count = count, .saved = saved};
  }
  return best;
}

int64_t DraftGain::best_count(int64_t match_length, int64_t most, int64_t num_sequences) const {
  return best(match_length, most, num_sequences).count;
}

bool DraftGain::is_worth_waiting(int64_t match_length, int64_t most, int64_t num_sequences) const {
  const double saved = best(match_length + 1, most, num_sequences).saved;
  return chance(match_length) * saved > costs_.wait * static_cast<double>(num_sequences);
}

}  // namespace tessera
