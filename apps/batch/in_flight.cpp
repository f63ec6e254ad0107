#include "apps/batch/in_flight.h"

#include <algorithm>
#include <utility>

namespace tessera {

int64_t FinishedRequest::generated_tokens() const {
  int64_t count = 0;
  for (const GenerationResult& result : results) count += std::ssize(result.tokens);
  return count;
}

void InFlight::submit(PreparedRequest request) {
  Member& member =
      *requests_.emplace_back(new Member{.request = std::move(request), .choices = {}});
  GenerationCallbacks callbacks;
  callbacks.on_prefill = [&member](int64_t, int64_t) { member.has_begun = true; };
  callbacks.is_cancelled = [this, &member] { return !may_go_on_(member.has_begun); };
  for (int64_t choice = 0; choice < member.request.num_choices; ++choice) {
    const SequencePtr& sequence = member.choices.emplace_back(engine_.create_sequence());
    engine_.submit(*sequence, member.request.prompt, member.request.params_of(choice), callbacks);
    ++num_sequences_;
  }
}

std::vector<FinishedRequest> InFlight::take_finished() {
  std::vector<FinishedRequest> finished;
  for (const std::unique_ptr<Member>& member : requests_) {
    if (!is_finished(*member)) continue;
    finished.push_back(results_of(*member));
    num_sequences_ -= static_cast<int64_t>(member->choices.size());
    member->choices.clear();
  }
  std::erase_if(requests_, [](const auto& member) { return member->choices.empty(); });
  return finished;
}

int64_t InFlight::num_begun() const {
  return std::ranges::count_if(requests_, [](const auto& member) { return member->has_begun; });
}

InFlight::Tokens InFlight::tokens() const {
  Tokens tokens;
  for (const std::unique_ptr<Member>& member : requests_) {
    const GenerationResult& first = engine_.result(*member->choices.front());
    tokens.prompt += first.cached_prompt_tokens + first.computed_prompt_tokens;
    for (const SequencePtr& sequence : member->choices) {
      const GenerationResult& result = engine_.result(*sequence);
      tokens.generated += static_cast<int64_t>(result.tokens.size());
    }
  }
  return tokens;
}

ServingState InFlight::state() const {
  const ServingStatistics statistics = engine_.statistics();
  const auto part = [](int64_t some, int64_t all) {
    return static_cast<double>(some) / static_cast<double>(std::max<int64_t>(all, 1));
  };
  return {.running = statistics.num_running,
          .waiting = statistics.num_waiting,
          .kv_use = part(statistics.held_pages, statistics.num_pages),
          .prefix_hits = part(statistics.prompt_tokens_cached,
                              statistics.prompt_tokens_cached + statistics.prompt_tokens_computed)};
}

bool InFlight::is_finished(const Member& member) const {
  return std::ranges::all_of(member.choices, [this](const SequencePtr& sequence) {
    return engine_.is_finished(*sequence);
  });
}

FinishedRequest InFlight::results_of(Member& member) const {
  FinishedRequest finished = {.request = std::move(member.request), .results = {}};
  for (const SequencePtr& sequence : member.choices) {
    finished.results.push_back(engine_.result(*sequence));
  }
  return finished;
}

}  // namespace tessera
