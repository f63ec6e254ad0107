#include "engine/serving/step_plan.h"

#include <algorithm>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>

namespace tessera {
namespace {

// Where a decode stands: behind those whose first page came first, among those with the same first
// page in the order of their tables, which does not change while they grow.
struct DecodePlace {
  size_t group;  // the first decode with this first page
  std::span<const int32_t> pages;
  size_t index;

  bool operator<(const DecodePlace& other) const {
    if (group != other.group) return group < other.group;
    return std::ranges::lexicographical_compare(pages, other.pages);
  }
};

// Brings decodes with the same pages in front next to each other: what neighbours share, attention
// may read once (engine/model/shared_prefixes.h). Where nothing is shared, nothing moves.
void group_by_pages(std::span<ScheduledSequence> decodes) {
  std::unordered_map<int32_t, size_t> groups;
  std::vector<DecodePlace> places;
  for (size_t i = 0; i < decodes.size(); ++i) {
    const BlockTable& pages = decodes[i].request->sequence->block_table();
    const size_t group = pages.empty() ? i : groups.try_emplace(pages.front(), i).first->second;
    places.push_back({.group = group, .pages = pages, .index = i});
  }
  if (groups.size() == decodes.size()) return;
  std::ranges::stable_sort(places, std::less());
  std::vector<ScheduledSequence> grouped;
  for (const DecodePlace& place : places) grouped.push_back(std::move(decodes[place.index]));
  std::ranges::move(grouped, decodes.begin());
}

}  // namespace

int64_t StepPlan::penalized_tokens(const Request& request) const {
  if (!request.penalty_window) return 0;
  const int64_t num_tokens = request.sequence->num_tokens();
  const int64_t window = *request.penalty_window;
  const int64_t listed = window == 0 ? num_tokens : std::min(window, num_tokens);
  // Tokens are listed once, and one sequence's always fit.
  return std::min(listed, limits_.max_penalized_tokens);
}

ScheduledSequence StepPlan::next_tokens(const Request& request) const {
  const Sequence& sequence = *request.sequence;
  const int64_t wanted = sequence.num_uncomputed();
  ScheduledSequence scheduled = {.request = request,
                                 .begin = sequence.num_launched(),
                                 .num_tokens = std::min(wanted, tokens_left_),
                                 .is_first = sequence.is_fresh()};
  scheduled.completes = scheduled.num_tokens == wanted;
  if (sequence.awaits_token()) scheduled.draw_index = sequence.draw_index();
  const bool lists_too_much =
      penalized_tokens_ + penalized_tokens(request) > limits_.max_penalized_tokens;
  if (scheduled.completes && lists_too_much) {
    scheduled.completes = false;
    --scheduled.num_tokens;
  }
  return scheduled;
}

void StepPlan::add(const ScheduledSequence& scheduled) {
  tokens_left_ -= scheduled.num_tokens;
  if (scheduled.completes) penalized_tokens_ += penalized_tokens(*scheduled.request);
  batch_.push_back(scheduled);
}

void StepPlan::begin_prompts() {
  const int64_t most = limits_.max_tokens_beside_decodes;
  if (batch_.empty() || most == 0) return;
  const int64_t num_decodes = limits_.max_tokens - tokens_left_;
  tokens_left_ = std::min(tokens_left_, std::max(most - num_decodes, most / 4));
}

std::vector<ScheduledSequence> StepPlan::take() {
  const auto others = std::ranges::stable_partition(
      batch_, [](const ScheduledSequence& scheduled) { return scheduled.num_tokens == 1; });
  group_by_pages({batch_.begin(), others.begin()});
  return std::move(batch_);
}

}  // namespace tessera
