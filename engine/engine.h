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
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/load_timings.h"
#include "engine/model/memory_plan.h"
#include "engine/model/weight_reader.h"
#include "engine/options.h"
#include "engine/text/chat_template.h"
#include "engine/text/text_limit.h"
#include "engine/text/tokenizer.h"
#include "model_loaders/checkpoint.h"
#include "model_loaders/model_folder.h"
#include "model_loaders/printable.h"

namespace tessera {

enum class StopReason : uint8_t {
  kEndOfSequence,    // the model ended its answer
  kStopString,       // one of SamplingParams::stop
  kMaxTokens,        // SamplingParams::max_tokens
  kContextFull,      // no room for another token
  kCancelled,        // is_cancelled said so
  kNonFiniteLogits,  // the model produced NaN or infinity
};

// "stop", "stop", "length", "length", "cancelled", "error": OpenAI's words where they exist.
std::string_view finish_reason(StopReason reason);

struct GenerationCallbacks {
  std::function<void(std::string_view text)> on_text;           // complete UTF-8 characters
  std::function<void(int64_t done, int64_t total)> on_prefill;  // prompt tokens, after each step
  // Asked before each step and, on a CPU, every few milliseconds of one, until it says yes. A step
  // of which all sequences are cancelled is given up: it changes none of them. No more than a
  // question: it neither calls the engine nor destroys a sequence.
  StopQuestion is_cancelled;
};

struct GenerationResult {
  StopReason stop_reason = StopReason::kEndOfSequence;
  std::string text;
  std::vector<TokenId> tokens;  // generated, without the one that ended the answer
  std::string error;            // for kNonFiniteLogits: what and where
  int64_t prompt_tokens = 0;
  int64_t cached_prompt_tokens = 0;    // of these, found in the sequence's KV cache
  int64_t computed_prompt_tokens = 0;  // and computed now
  double prefill_seconds = 0.0;        // from start to the first token, or without one to the last
                                       // step of the prompt
  double decode_seconds = 0.0;         // from the first token to the last

  // False when cancelling came first.
  bool is_prompt_computed() const {
    return cached_prompt_tokens + computed_prompt_tokens == prompt_tokens;
  }
  double prefill_tokens_per_second() const;  // of the prompt tokens that were computed
  double decode_tokens_per_second() const;   // (n - 1) / decode_seconds; 0 below two tokens
};

// What inspect shows. No weights are loaded for it.
struct ModelDescription {
  ModelFolder folder;
  std::vector<TensorEntry> tensors;
  uint64_t weights_bytes_on_disk = 0;
  int64_t num_parameters = 0;
  std::string device;  // description of the device that would be used
  std::optional<MemoryPlan> memory_plan;
  std::string memory_problem;  // why there is no plan
  std::string chat_template;   // renderer's name, "" when unknown
  std::string chat_template_problem;
  int64_t tokenizer_size = 0;
  std::optional<TokenId> bos_token;
  std::vector<TokenId> eos_tokens;
  std::vector<std::string> warnings;
};

ModelDescription describe_model(const EngineOptions& options);

// Where Engine::load would run with these options.
DeviceType chosen_device(const EngineOptions& options);

// One conversation or document with its KV cache. Destroying it gives its pages back; it must not
// outlive its engine.
class Sequence;
struct SequenceDeleter {
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
  // Throws Error, with a hint, when the folder's template is unknown and none was chosen.
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
  std::vector<TokenId> encode_chat(std::span<const Message> messages,
                                   const EncodeProgress& progress = {}) const;

  SequencePtr create_sequence();

  // Generates after `prompt`, which replaces what the sequence holds; the longest common prefix is
  // kept in the cache and not computed again. Blocks until the answer ends. Throws Error when
  // the prompt is empty or has ids outside the vocabulary, PromptTooLong when it does not leave
  // room for one token (or for params.max_tokens: the three numbers are in the message).
  GenerationResult generate(Sequence& sequence, std::span<const TokenId> prompt,
                            const SamplingParams& params,
                            const GenerationCallbacks& callbacks = {});

  // The same in parts, for several sequences at once: submit each, then step() until it returns
  // false. A sequence's result() is there once it has finished.
  void submit(Sequence& sequence, std::span<const TokenId> prompt, const SamplingParams& params,
              const GenerationCallbacks& callbacks = {});
  // Runs one forward pass over what is waiting and running. False when nothing is left to do.
  bool step();
  bool is_finished(const Sequence& sequence) const;
  const GenerationResult& result(const Sequence& sequence) const;

  // For tests and benchmarks: logits of every prompt token, float32 [num_tokens, vocab_size]
  // row-major, computed in one pass over a fresh cache. Throws Stopped when told to.
  std::vector<float> prompt_logits(std::span<const TokenId> prompt,
                                   const StopQuestion& should_stop = {});

  // Bytes of weights a decode step must read: all matrices once, the embedding table only as the
  // output projection when tied.
  uint64_t weight_bytes_per_token() const;
  // Bytes of device memory in use by this process's buffers.
  uint64_t allocated_bytes() const;
  // Bytes per second this device reads now; see DeviceMeasurement::read_bandwidth. Throws Stopped
  // when told to.
  double measure_read_bandwidth(const StopQuestion& should_stop = {});

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
