#include "apps/batch/run.h"

#include <algorithm>

#include "apps/answer/answer.h"
#include "apps/batch/record.h"
#include "apps/process/signals.h"
#include "apps/terminal/human_units.h"

namespace tessera {

BatchCounts BatchRun::run(Engine* engine, BatchInput& input, BatchOutput& output) {
  const auto is_answered = [&output](const BatchItem& item) {
    return output.answers().contains(item.custom_id);
  };
  const std::vector<BatchItem>& items = input.items();
  start_ = Clock::now();
  counts_.total = static_cast<int64_t>(items.size());
  counts_.skipped = std::count_if(items.begin(), items.end(), is_answered);
  for (const BatchItem& item : items) {
    if (is_answered(item)) continue;
    auto line = input.read(item);
    if (const auto* problem = std::get_if<BatchProblem>(&line)) {
      output.append(failed(item, problem->code, problem->message));
    } else if (const auto record = answer(*engine, item, std::get<BatchRequest>(std::move(line)))) {
      output.append(*record);
    }
    if (pending_signal() != 0) break;
  }
  bar_.clear();
  counts_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return counts_;
}

nlohmann::ordered_json BatchRun::failed(const BatchItem& item, const std::string& code,
                                        const std::string& message) {
  ++counts_.errors;
  return error_record(item, code, message);
}

std::optional<nlohmann::ordered_json> BatchRun::answer(Engine& engine, const BatchItem& item,
                                                       BatchRequest request) {
  if (!defaults_.system.empty() && request.messages.front().role != Role::kSystem) {
    request.messages.insert(request.messages.begin(), defaults_.system.front());
  }
  std::vector<TokenId> prompt;
  try {
    prompt = engine.encode_chat(request.messages, request.inputs, [this](uint64_t, uint64_t) {
      throw_if_interrupted();
      show_progress();
    });
  } catch (const Interrupted&) {
    return std::nullopt;
  } catch (const PromptTooLong& error) {
    return failed(item, "context_length_exceeded", error.what());
  } catch (const Error& error) {
    return failed(item, "invalid_prompt", error.what());
  }
  const SamplingParams params =
      resolve_sampling(merged(defaults_.sampling, request.sampling), engine.default_sampling());
  const ContextDemand demand = engine.context_demand(prompt, params);
  if (!demand.fits()) {
    return failed(item, "context_length_exceeded", demand.problem());
  }
  return generate(engine, item, prompt, params);
}

std::optional<nlohmann::ordered_json> BatchRun::generate(Engine& engine, const BatchItem& item,
                                                         std::span<const TokenId> prompt,
                                                         const SamplingParams& params) {
  GenerationCallbacks callbacks;
  callbacks.on_prefill = [this](int64_t, int64_t) { show_progress(); };
  callbacks.on_text = [this](std::string_view) { show_progress(); };
  callbacks.is_cancelled = is_interrupted;
  // A fresh sequence each: what a request is answered must not depend on the one before it.
  const SequencePtr sequence = engine.create_sequence();
  const GenerationResult result = engine.generate(*sequence, prompt, params, callbacks);
  if (result.stop_reason == StopReason::kCancelled) return std::nullopt;
  counts_.prompt_tokens += result.prompt_tokens;
  counts_.generated_tokens += static_cast<int64_t>(result.tokens.size());
  if (result.stop_reason == StopReason::kNonFiniteLogits) {
    return failed(item, "non_finite_logits", result.error);
  }
  ++counts_.answered;
  const bool is_thinking = ends_in_thinking(engine.tokenizer(), prompt);
  return answer_record(item, defaults_.model_name, result,
                       split_thinking(result.text, is_thinking));
}

void BatchRun::show_progress() {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const int64_t done_now = counts_.answered + counts_.errors;
  const auto done = static_cast<double>(counts_.done());
  const auto total = static_cast<double>(counts_.total);
  const std::string eta =
      done_now == 0 ? "?"
                    : human_duration(seconds / static_cast<double>(done_now) * (total - done));
  const double speed = static_cast<double>(counts_.generated_tokens) / seconds;
  bar_.update(done / total,
              concat(counts_.done(), '/', counted(counts_.total, "request"), ", ",
                     counted(counts_.errors, "error"), ", ", fixed(speed, 1), " tok/s, ETA ", eta));
}

}  // namespace tessera
