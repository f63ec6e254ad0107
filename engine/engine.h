// The public face of tessera: load a model, generate text from it.
//
//   auto engine = Engine::load({.model = "weights/demo"});
//   auto sequence = engine->create_sequence();
//   const Message question{Role::kUser, "Who are you?"};
//   auto prompt = engine->encode_chat({&question, 1});
//   engine->generate(*sequence, prompt, engine->default_sampling(),
//                    {.on_text = [](std::string_view text) { std::cout << text; }});
//
// One thread uses an Engine at a time; callbacks run on that thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/load_timings.h"
#include "engine/model/load_progress.h"
#include "engine/model/memory_plan.h"
#include "engine/model/sampling_params.h"
#include "engine/model_description.h"
#include "engine/options.h"
#include "engine/serving/end_rule.h"
#include "engine/serving/generation_callbacks.h"
#include "engine/serving/generation_result.h"
#include "engine/serving/serving_statistics.h"
#include "engine/text/chat_template.h"
#include "engine/text/text_limit.h"
#include "engine/text/thinking_splitter.h"
#include "engine/text/tokenizer.h"
#include "kernels/tensor/device_id.h"
#include "model_loaders/kv_file.h"
#include "model_loaders/model_folder.h"
#include "model_loaders/printable.h"

namespace tessera {

// Whose keys and values a file holds.
struct KvFileOrigin {
  std::string model_fingerprint;  // engine/model_fingerprint.h
  std::string text;               // for who reads the file; see KvFile::text
};

// Where Engine::load would run with these options.
DeviceType chosen_device(const EngineOptions& options);

class GenerationLoop;
// One conversation or document with its KV cache. Destroying it gives its pages back; it must not
// outlive its engine.
class Sequence;
struct SequenceDeleter {
  GenerationLoop* loop = nullptr;
  void operator()(Sequence* sequence) const;
};
using SequencePtr = std::unique_ptr<Sequence, SequenceDeleter>;

class Engine {
 public:
  // Throws Error: bad folder, unsupported model, no such device, not enough memory. Warnings go to
  // the log.
  static std::unique_ptr<Engine> load(const EngineOptions& options,
                                      const LoadProgress& progress = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const ModelFolder& folder() const;
  const Tokenizer& tokenizer() const;
  const MemoryPlan& memory_plan() const;
  const LoadTimings& load_timings() const;
  std::string device_description() const;
  DeviceType device() const;
  // Tokens a sequence may hold, prompt and answer together.
  int64_t context_size() const;
  // Throws Error, with a hint, when the folder's template is missing or wrong and none was chosen.
  const ChatTemplate& chat_template() const;
  // Tokens that end an answer: generation_config.json, config.json, tokenizer and template.
  const std::vector<TokenId>& stop_tokens() const;
  SamplingParams default_sampling() const;

  // How long a text can be for this context.
  TextLimit text_limit() const;

  // Prompts as tokens. encode_text puts BOS in front when the model wants one. Throws PromptTooLong
  // before it tokenises what cannot fit; that a prompt fits is known only afterwards.
  std::vector<TokenId> encode_text(std::string_view text,
                                   const EncodeProgress& progress = {}) const;
  std::vector<TokenId> encode_chat(std::span<const Message> messages, const ChatInputs& inputs = {},
                                   const EncodeProgress& progress = {}) const;

  // What a prompt and its answer ask of the context: whether generate() will accept them.
  ContextDemand context_demand(std::span<const TokenId> prompt, const SamplingParams& params) const;

  SequencePtr create_sequence();

  // Generates after `prompt`, which replaces what the sequence holds; the longest common prefix is
  // kept in the cache and not computed again, nor are whole pages of it that other sequences have
  // computed. Blocks until the answer ends. Throws Error when the prompt is empty or has ids
  // outside the vocabulary, when params are out of their ranges, and while the sequence still
  // generates; PromptTooLong when the prompt does not leave room for one token (or for
  // params.max_tokens: the three numbers are in the message). Generations that were submitted go on
  // meanwhile: what step() throws for them ends this one too, and is thrown from here.
  GenerationResult generate(Sequence& sequence, std::span<const TokenId> prompt,
                            const SamplingParams& params,
                            const GenerationCallbacks& callbacks = {});

  // The same in parts, for several sequences at once: submit each, then step() until it returns
  // false. A sequence's result() is there once it has finished. Throws as generate() does.
  void submit(Sequence& sequence, std::span<const TokenId> prompt, const SamplingParams& params,
              const GenerationCallbacks& callbacks = {});
  // Runs one forward pass over what is waiting and running. False when nothing is left to do. What
  // a callback throws ends its own generation, and is thrown from here once the pass is over: the
  // others go on with the next call. An error of the device ends all of them, as cancelled.
  bool step();
  // The next step() ends the sequence's generation as cancelled, if one runs or waits.
  void cancel(const Sequence& sequence);
  // Whether its generation has ended; false before the first.
  bool is_finished(const Sequence& sequence) const;
  const GenerationResult& result(const Sequence& sequence) const;
  ServingStatistics statistics() const;

  // Files of keys and values; see model_loaders/kv_file.h. They need EngineOptions::prefix_cache:
  // without it both throw Error.
  //
  // From now on the file's tokens count as computed: a prompt of any sequence that begins with them
  // is computed only from there on, as long as nothing else needs their pages. Does not check that
  // the file belongs to this model, which its header says. Throws Error when the file is of another
  // number format, page size, model shape or stretch of RoPE, or does not fit the context.
  // `progress` counts bytes; what it throws ends the loading.
  void load_kv(const KvFile& file, const LoadProgress& progress = {});
  // Writes what is computed of the prompt's beginning, in whole pages, as a file's bytes in order.
  // Returns how many tokens that are; 0, and nothing is written, when there is not one page.
  int64_t save_kv(std::span<const TokenId> prompt, const KvFileOrigin& origin,
                  const ByteSink& write, const LoadProgress& progress = {}) const;

  // For tests and benchmarks: logits of every prompt token, float32 [num_tokens, vocab_size]
  // row-major, computed anew in steps of as many tokens as a step may have. Where pages are
  // missing, idle sequences lose theirs. Throws Stopped when told to, and Error when sequences that
  // still generate hold too many pages.
  std::vector<float> prompt_logits(std::span<const TokenId> prompt,
                                   const StopQuestion& should_stop = {});

  // Bytes of weights a decode step must read: all matrices once, the embedding table only as the
  // output projection when tied.
  uint64_t weight_bytes_per_token() const;
  // Bytes of device memory in use by this process's buffers.
  uint64_t allocated_bytes() const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
