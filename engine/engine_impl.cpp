#include "engine/engine_impl.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "engine/model/host_tensor.h"
#include "engine/serving/sequence.h"

namespace tessera {
namespace {

bool is_active(const Sequence& sequence) {
  return sequence.state() == SequenceState::kWaiting || sequence.state() == SequenceState::kRunning;
}

// Whether anybody waits for what the step computes.
bool is_wanted(const LaunchedStep& step) {
  return std::ranges::any_of(
      step.batch, [](const ScheduledSequence& item) { return item.sequence != nullptr; });
}

// Whether nobody waits any more for a step that is being launched.
bool is_cancelled(const LaunchedStep& step) {
  return std::ranges::all_of(
      step.batch, [](const ScheduledSequence& item) { return item.sequence->is_cancelled(); });
}

}  // namespace

// The memory that a launched step uses is freed before the backend is.
Engine::Impl::~Impl() {
  try {
    backend->device().synchronize();
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
  }
}

void Engine::Impl::check_prompt(std::span<const TokenId> prompt, int64_t reserved) const {
  CHECK(!prompt.empty(), "the prompt is empty");
  for (const TokenId token : prompt) {
    CHECK(token >= 0 && token < folder.config.vocab_size, "token id ", token,
          " is outside the vocabulary of ", folder.config.vocab_size);
  }
  const auto prompt_size = static_cast<int64_t>(prompt.size());
  if (prompt_size + reserved > plan.context_size) {
    throw PromptTooLong(
        concat("prompt ", prompt_size, " + reserved ", reserved, " > limit ",
               counted(plan.context_size, "token")),
        plan.context_size < folder.config.max_position_embeddings
            ? concat("the model itself takes up to ",
                     counted(folder.config.max_position_embeddings, "token"), ": see --ctx-size")
            : "shorten the prompt or --max-tokens");
  }
}

void Engine::Impl::submit(Sequence& sequence, std::span<const TokenId> prompt,
                          const SamplingParams& params, const GenerationCallbacks& callbacks) {
  validate(params);
  CHECK(!is_active(sequence), "the sequence is still generating");
  check_prompt(prompt, std::max<int64_t>(params.max_tokens, 1));
  sequence.start(prompt, params, callbacks);
  scheduler->add(sequence);
}

bool Engine::Impl::step() {
  try {
    return run_step();
  } catch (...) {
    // Half a step leaves caches of unknown contents: end every generation and compute anew.
    launched.clear();
    for (Sequence* sequence : sequences) {
      if (!is_active(*sequence)) continue;
      scheduler->remove(*sequence);
      sequence->abandon();
    }
    throw;
  }
}

bool Engine::Impl::run_step() {
  finish_cancelled();
  if (!launched.empty() && !is_wanted(launched.front())) launched.pop_front();
  if (launched.empty()) {
    std::vector<ScheduledSequence> batch = scheduler->next_batch();
    if (batch.empty()) {
      CHECK(scheduler->is_idle(), "the KV cache of ", counted(plan.num_pages, "page"),
            " is too small for the running sequences");
      return false;
    }
    if (!launch(std::move(batch))) {
      finish_cancelled();
      return !scheduler->is_idle();
    }
  }
  if (runs_ahead) {
    // The device goes on with this one while the host sees to the tokens of the one before.
    std::vector<ScheduledSequence> next = scheduler->batch_after(launched.front().batch);
    if (!next.empty()) launch(std::move(next));
  }
  collect(launched.front());
  launched.pop_front();
  return !scheduler->is_idle();
}

void Engine::Impl::finish_cancelled() {
  std::vector<Sequence*> cancelled;
  for (Sequence* sequence : sequences) {
    if (is_active(*sequence) && sequence->is_cancelled()) cancelled.push_back(sequence);
  }
  for (Sequence* sequence : cancelled) finish(*sequence, StopReason::kCancelled);
}

bool Engine::Impl::release_oldest_unused_cache() {
  Sequence* oldest = nullptr;
  for (Sequence* sequence : sequences) {
    const bool is_running = sequence->state() == SequenceState::kRunning;
    if (is_running || sequence->block_table().empty()) continue;
    if (oldest == nullptr || sequence->last_used() < oldest->last_used()) oldest = sequence;
  }
  if (oldest == nullptr) return false;
  oldest->release_cache();
  return true;
}

bool Engine::Impl::launch(std::vector<ScheduledSequence> batch) {
  LaunchedStep step{.batch = std::move(batch)};
  const StopScope scope(backend->device(), [&step] { return is_cancelled(step); });
  try {
    compute(step);
  } catch (const Stopped&) {
    return false;
  }
  launched.push_back(std::move(step));
  return true;
}

void Engine::Impl::compute(LaunchedStep& step) {
  const Tensor sampled = launched.empty() ? Tensor{} : launched.back().tokens;
  const ForwardBatch inputs =
      activations->inputs.prepare(step.batch, sampled, *cache, backend->device());
  if (inputs.sampled_rows.dim(0) == 0) {
    transformer->forward(inputs);
  } else {
    step.tokens =
        activations->sampler.sample(transformer->sampled_logits(inputs), step.batch,
                                    inputs.sampling, tokenizer->size(), backend->operations());
    step.download = backend->device().start_download(step.tokens);
  }
}

// A callback may end other generations, which takes their sequences out of the step.
void Engine::Impl::collect(LaunchedStep& step) {
  std::vector<TokenId> tokens;
  if (step.tokens.empty()) {
    backend->device()
        .synchronize();  // so that prefill progress and cancelling keep pace with the device
  } else {
    tokens.resize(static_cast<size_t>(step.tokens.dim(0)));
    backend->device().finish_download(host_tensor(tokens), step.download);
  }
  for (const ScheduledSequence& scheduled : step.batch) {
    if (scheduled.sequence != nullptr) scheduled.sequence->advance(scheduled.num_tokens);
  }
  auto token = tokens.begin();
  for (const ScheduledSequence& scheduled : step.batch) {
    if (!scheduled.completes) continue;
    if (scheduled.sequence != nullptr) take_token(*scheduled.sequence, *token);
    ++token;
  }
}

void Engine::Impl::take_token(Sequence& sequence, TokenId token) {
  if (token == kNonFiniteLogits) {
    finish(sequence, StopReason::kNonFiniteLogits,
           concat("non-finite logits at position ", sequence.num_tokens() - 1));
    sequence.release_cache();
    return;
  }
  sequence.append(token, stop_tokens, plan.context_size);
  if (sequence.state() == SequenceState::kFinished) forget(sequence);
}

void Engine::Impl::forget(Sequence& sequence) {
  scheduler->remove(sequence);
  for (LaunchedStep& step : launched) {
    for (ScheduledSequence& scheduled : step.batch) {
      if (scheduled.sequence == &sequence) scheduled.sequence = nullptr;
    }
  }
}

void Engine::Impl::finish(Sequence& sequence, StopReason reason, std::string error) {
  forget(sequence);
  sequence.finish(reason, std::move(error));
}

std::vector<float> Engine::Impl::prompt_logits(std::span<const TokenId> prompt) {
  check_prompt(prompt, 0);
  Sequence sequence(*cache, *tokenizer, [](Sequence&) {});
  sequence.start(prompt, {}, {});
  const int64_t num_pages = cache->pages_missing(sequence.block_table(), sequence.num_tokens());
  while (cache->num_free_pages() < num_pages && release_oldest_unused_cache()) {
  }
  const int64_t vocab_size = folder.config.vocab_size;
  std::vector<float> result;
  while (sequence.num_uncached() > 0) {
    const ScheduledSequence chunk =
        next_tokens(sequence, std::min(sequence.num_uncached(), limits.max_tokens));
    cache->grow(sequence.block_table(), sequence.num_cached() + chunk.num_tokens);
    transformer->forward(activations->inputs.prepare({&chunk, 1}, {}, *cache, backend->device()));
    for (int64_t begin = 0; begin < chunk.num_tokens; begin += limits.max_sequences) {
      const int64_t end = std::min(begin + limits.max_sequences, chunk.num_tokens);
      std::vector<float> logits(static_cast<size_t>((end - begin) * vocab_size));
      backend->device().download(
          host_tensor(logits, {end - begin, vocab_size}),
          transformer->logits(activations->inputs.rows(begin, end, backend->device())));
      result.insert(result.end(), logits.begin(), logits.end());
    }
    sequence.advance(chunk.num_tokens);
  }
  return result;
}

}  // namespace tessera
