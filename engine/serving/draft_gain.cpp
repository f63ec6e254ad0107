#include "engine/serving/draft_gain.h"

#include <algorithm>

namespace tessera {
namespace {

// How much the newest token decides of the chance of matches that long, and of the chances of
// longer ones. Longer matches are fewer: an answer in which short ones are wrong need not try them
// to know.
constexpr double kNewestPart = 1.0 / 8;
constexpr double kNewestPartOfLonger = 1.0 / 32;

}  // namespace

double DraftGain::chance(int64_t match_length) const {
  return chances_[static_cast<size_t>(std::min(match_length, kLongMatch))];
}

void DraftGain::count(int64_t match_length, bool was_right) {
  const double newest = was_right ? 1.0 : 0.0;
  const auto length = static_cast<size_t>(std::min(match_length, kLongMatch));
  chances_[length] += kNewestPart * (newest - chances_[length]);
  for (size_t longer = length + 1; longer < chances_.size(); ++longer) {
    chances_[longer] += kNewestPartOfLonger * (newest - chances_[longer]);
  }
}

// A draft counts if all before it are right; each one makes the match longer.
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
