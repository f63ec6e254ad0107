// What an Engine is made of, in the order it is built.
#pragma once

#include <deque>

#include "engine/engine.h"
#include "engine/model/activations.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model_weights.h"
#include "engine/model/transformer.h"
#include "engine/serving/scheduler.h"

namespace tessera {

// A step that the device has been given and whose tokens the host has not taken.
struct LaunchedStep {
  std::vector<ScheduledSequence> batch;
  Tensor tokens;                // on the device, one per sequence that completes; may be empty
  DownloadTicket download = 0;  // of the tokens
};

// While it lives, the device asks `should_stop`.
class StopScope {
 public:
  StopScope(Device& device, StopQuestion should_stop) : device_(device) {
    device_.set_stop_question(std::move(should_stop));
  }
  ~StopScope() { device_.set_stop_question({}); }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  Device& device_;
};

struct Engine::Impl {
  Impl(const EngineOptions& options, const LoadProgress& progress);
  ~Impl();

  void submit(Sequence& sequence, std::span<const TokenId> prompt, const SamplingParams& params,
              const GenerationCallbacks& callbacks);
  bool step();
  std::vector<float> prompt_logits(std::span<const TokenId> prompt);
  // No step computes the sequence any more, and nobody takes the token that a launched one samples
  // for it. Its pages may have other owners at once: their steps run after those launched.
  void forget(Sequence& sequence);

  ModelFolder folder;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  Error chat_template_problem{""};  // thrown when chat_template is wanted and absent
  std::vector<TokenId> stop_tokens;
  std::unique_ptr<Backend> backend;
  MemoryPlan plan;
  BackendLimits limits;
  std::optional<ModelWeights> weights;
  std::optional<KvCache> cache;
  Buffer activation_buffer;
  std::optional<Activations> activations;
  std::optional<Scheduler> scheduler;
  std::optional<Transformer> transformer;
  std::vector<Sequence*> sequences;  // all that live, for finding unused caches
  LoadTimings timings;

 private:
  // Tokenizer, chat template and the tokens that end an answer.
  void read_text_files(const EngineOptions& options);
  // Everything whose memory the plan counts; the weights are not filled yet.
  void allocate(const EngineOptions& options, const Checkpoint& checkpoint);
  // Runs every operation once on whatever the weights hold; see warm_up.cpp.
  void warm_up();
  // Throws Error when the prompt is empty, has ids outside the vocabulary or, with `reserved`
  // tokens of answer, exceeds the context.
  void check_prompt(std::span<const TokenId> prompt, int64_t reserved) const;
  bool run_step();
  void finish_cancelled();
  // Frees the pages of the sequence that has not generated for longest; false when none has any.
  bool release_oldest_unused_cache();
  // Gives the step to the device. The tokens of one that follows a launched step are those that the
  // launched one samples. False when all its sequences were cancelled meanwhile: the step is given
  // up, and as no sequence has advanced, it is as if it had never begun.
  bool launch(std::vector<ScheduledSequence> batch);
  void compute(LaunchedStep& step);
  // Waits for the step and appends what it sampled.
  void collect(LaunchedStep& step);
  void take_token(Sequence& sequence, TokenId token);
  void finish(Sequence& sequence, StopReason reason, std::string error = {});

  bool runs_ahead = false;  // see EngineOptions::run_ahead
  // Oldest first: one at most between calls of step(), two while the older is collected.
  std::deque<LaunchedStep> launched;
};

// --- what load and describe_model share ---------------------------------------------------------

// The backend that `choice` means on this machine. Throws Error when CUDA is asked for and absent.
std::unique_ptr<Backend> make_backend(const EngineOptions& options);

// Ids that end an answer, from all four sources, sorted. Throws Error when one is not in the
// vocabulary.
std::vector<TokenId> collect_stop_tokens(const ModelFolder& folder, const Tokenizer& tokenizer,
                                         const ChatTemplate* chat_template);

// The template that the options name, else the folder's own. Throws Error when it is unknown.
ChatTemplate choose_chat_template(const EngineOptions& options, const ModelFolder& folder);

}  // namespace tessera
