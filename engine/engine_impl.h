// What an Engine is made of, in the order it is built.
#pragma once

#include <memory>
#include <optional>

#include "engine/engine.h"
#include "engine/model/model_runner.h"
#include "engine/serving/generation_loop.h"

namespace tessera {

struct Engine::Impl {
  Impl(const EngineOptions& options, const LoadProgress& progress);

  void submit(Sequence& sequence, std::span<const TokenId> prompt, const SamplingParams& params,
              const GenerationCallbacks& callbacks);
  std::vector<float> prompt_logits(std::span<const TokenId> prompt,
                                   const StopQuestion& should_stop);

  TextLimit text_limit() const;

  void load_kv(const KvFile& file, const LoadProgress& progress);
  int64_t save_kv(std::span<const TokenId> prompt, const KvFileOrigin& origin,
                  const ByteSink& write, const LoadProgress& progress) const;

  ModelFolder folder;
  ModelConfig computed_config;  // kernel_config() of the folder's
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  Error chat_template_problem{""};  // thrown when chat_template is wanted and absent
  std::vector<TokenId> stop_tokens;
  MemoryPlan plan;
  std::string longer_context;  // what gives one, or ""
  std::optional<ModelRunner> runner;
  std::optional<PagePool> pages;
  std::optional<GenerationLoop> loop;
  LoadTimings timings;

 private:
  // Tokenizer, chat template and the tokens that end an answer.
  void read_text_files(const EngineOptions& options);
  // Everything whose memory the plan counts; the weights are not filled yet.
  void allocate(const EngineOptions& options, const Checkpoint& checkpoint,
                std::unique_ptr<Backend> backend);
  KvLayout kv_layout() const;
  void check_tokens(std::span<const TokenId> tokens) const;
  // Throws Error when the prompt is empty, has ids outside the vocabulary or, with `reserved`
  // tokens of answer, exceeds the context.
  void check_prompt(std::span<const TokenId> prompt, int64_t reserved) const;
};

}  // namespace tessera
