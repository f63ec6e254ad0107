// Answering the requests of a batch, one after another.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/batch/input.h"
#include "apps/batch/output.h"
#include "apps/terminal/console.h"
#include "apps/terminal/progress_bar.h"
#include "engine/engine.h"

namespace tessera {

// How many requests ended how, in this run.
struct BatchCounts {
  int64_t total = 0;    // in the input
  int64_t skipped = 0;  // answered by an earlier run
  int64_t answered = 0;
  int64_t errors = 0;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  double seconds = 0.0;

  int64_t done() const { return skipped + answered + errors; }
};

// What holds for every request.
struct BatchDefaults {
  std::string model_name;       // to report
  std::vector<Message> system;  // for requests without a system message; none or one
  SamplingOptions sampling;     // for what a request does not set
};

class BatchRun {
 public:
  // `console` must outlive the run.
  BatchRun(BatchDefaults defaults, const Console& console)
      : defaults_(std::move(defaults)), bar_(console, "batch") {}

  // Appends a record for every item that `output` has no answer for. `engine` may be null when none
  // of them is a request. Returns early at a signal, which stays pending; what was being answered
  // is then not recorded. Throws Error when the engine or the output fails.
  BatchCounts run(Engine* engine, BatchInput& input, BatchOutput& output);

 private:
  using Clock = std::chrono::steady_clock;
  using OrderedJson = nlohmann::ordered_json;

  OrderedJson failed(const BatchItem& item, const std::string& code, const std::string& message);
  // The record of an answer or an error; nothing when a signal cut the answer short.
  std::optional<OrderedJson> answer(Engine& engine, const BatchItem& item, BatchRequest request);
  std::optional<OrderedJson> generate(Engine& engine, const BatchItem& item,
                                      std::span<const TokenId> prompt,
                                      const SamplingParams& params);
  void show_progress();

  BatchDefaults defaults_;
  ProgressBar bar_;
  BatchCounts counts_;
  Clock::time_point start_;
};

}  // namespace tessera
