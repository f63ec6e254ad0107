// The requests that the engine has been given and has not answered yet.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "apps/batch/prepare.h"
#include "apps/batch/serving_state.h"
#include "engine/engine.h"

namespace tessera {

// A request of which every choice has ended, and what each came to.
struct FinishedRequest {
  PreparedRequest request;
  std::vector<GenerationResult> results;

  // In all choices together.
  int64_t generated_tokens() const;
};

class InFlight {
 public:
  // `may_go_on` is asked, during steps too, whether a request that has begun, or has not, is still
  // wanted. The engine must outlive this.
  InFlight(Engine& engine, std::function<bool(bool has_begun)> may_go_on)
      : engine_(engine), may_go_on_(std::move(may_go_on)) {}

  // A sequence for each choice: what a request is answered must not depend on the one before it.
  void submit(PreparedRequest request);

  // In the order they were submitted. Results may be cancelled: may_go_on() said no.
  std::vector<FinishedRequest> take_finished();

  bool is_empty() const { return requests_.empty(); }
  int64_t num_sequences() const { return num_sequences_; }
  // Requests of which a part has been computed.
  int64_t num_begun() const;

  // Tokens that have been computed for those that are here. Looks at each: not for every step.
  struct Tokens {
    int64_t prompt = 0;  // with those that were cached; of several choices those of the first
    int64_t generated = 0;
  };
  Tokens tokens() const;
  ServingState state() const;

 private:
  struct Member {
    PreparedRequest request;
    bool has_begun = false;
    std::vector<SequencePtr> choices;
  };

  bool is_finished(const Member& member) const;
  FinishedRequest results_of(Member& member) const;

  Engine& engine_;
  std::function<bool(bool)> may_go_on_;
  std::vector<std::unique_ptr<Member>> requests_;
  int64_t num_sequences_ = 0;
};

}  // namespace tessera
