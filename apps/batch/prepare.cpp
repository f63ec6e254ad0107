#include "apps/batch/prepare.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): near seeds become unlike ones.
uint64_t mixed(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// Of a request without a seed: the run's, made its own by its custom_id, so that requests of the
// same prompt are answered apart, and each alike wherever and in whatever order it is computed.
uint64_t seed_of(uint64_t run_seed, const IdDigest& id) { return mixed(mixed(run_seed) ^ id.low); }

std::vector<TokenId> encode_chat(const Engine& engine, BatchRequest& request,
                                 const BatchDefaults& defaults, const EncodeProgress& progress) {
  const bool has_own_system =
      std::ranges::find(request.messages, Role::kSystem, &Message::role) != request.messages.end();
  CHECK(!has_own_system || defaults.kv_path.empty(),
        "the chat has a system message of its own, but ", defaults.kv_path,
        " says what chats begin with");
  if (!has_own_system) request.messages = defaults.opening.continued(request.messages);
  if (defaults.on_overflow == OnOverflow::kMiddle) {
    return encode_long_chat(engine, request.messages, request.inputs, progress);
  }
  return engine.encode_chat(request.messages, request.inputs, progress);
}

std::vector<TokenId> encode(const Engine& engine, BatchRequest& request,
                            const BatchDefaults& defaults, const EncodeProgress& progress) {
  if (request.endpoint == Endpoint::kChatCompletions) {
    return encode_chat(engine, request, defaults, progress);
  }
  if (auto* tokens = std::get_if<std::vector<TokenId>>(&request.prompt)) return std::move(*tokens);
  const std::string& text = std::get<std::string>(request.prompt);
  return defaults.on_overflow == OnOverflow::kMiddle ? encode_long_text(engine, text, progress)
                                                     : engine.encode_text(text, progress);
}

void fit_prompt(const Engine& engine, PreparedRequest& request) {
  FittedPrompt fitted = leave_out_middle(engine, std::move(request.prompt), request.params);
  request.prompt = std::move(fitted.tokens);
  request.left_out = std::move(fitted.left_out);
}

// Throws Error for a prompt that generate() would refuse.
void check_prompt(const Engine& engine, const PreparedRequest& request) {
  const int64_t vocab_size = engine.folder().config.vocab_size;
  for (const TokenId token : request.prompt) {
    CHECK(token < vocab_size, "token id ", token, " is outside the vocabulary of ", vocab_size);
  }
  const ContextDemand demand = engine.context_demand(request.prompt, request.params);
  if (demand.fits()) return;
  throw PromptTooLong(
      demand.problem(),
      demand.prompt_tokens < demand.context_size
          ? "shorten the prompt or lower max_tokens"
          : "shorten the prompt, or leave its middle out with --on-overflow middle");
}

}  // namespace

SamplingParams PreparedRequest::params_of(int64_t choice) const {
  SamplingParams own = params;
  // As SplitMix64 numbers its outputs, from a state that is the seed mixed: if it were the seed
  // itself, choice 2 of one seed could be choice 1 of the next.
  constexpr uint64_t kStride = 0x9e3779b97f4a7c15u;
  if (choice > 0) own.seed = mixed(mixed(params.seed) + static_cast<uint64_t>(choice) * kStride);
  return own;
}

std::variant<PreparedRequest, BatchProblem> prepare(const Engine& engine, const BatchItem& item,
                                                    BatchRequest request,
                                                    const BatchDefaults& defaults,
                                                    const EncodeProgress& progress) {
  const bool is_chat = request.endpoint == Endpoint::kChatCompletions;
  PreparedRequest prepared = {.item = item,
                              .custom_id = std::move(request.custom_id),
                              .endpoint = request.endpoint,
                              .prompt = {},
                              .num_choices = request.num_choices,
                              .params = {}};
  const auto problem = [&](const char* code, std::string message) {
    return BatchProblem{std::move(prepared.custom_id), code, std::move(message)};
  };
  try {
    prepared.params =
        resolve_sampling(merged(defaults.sampling, request.sampling), engine.default_sampling());
  } catch (const Error& error) {  // of the line and the command's options together
    return problem("invalid_request", error.what());
  }
  prepared.draws_with_run_seed = prepared.params.temperature > 0.0 && !request.sampling.seed;
  if (prepared.draws_with_run_seed) prepared.params.seed = seed_of(prepared.params.seed, item.id);
  prepared.params.continues_prompt = !is_chat;
  if (request.logprobs) prepared.params.top_logprobs = request.top_logprobs;
  try {
    prepared.prompt = encode(engine, request, defaults, progress);
    if (defaults.on_overflow == OnOverflow::kMiddle) fit_prompt(engine, prepared);
    if (is_chat) prepared.thinking = thinking_start(engine.tokenizer(), prepared.prompt);
    check_prompt(engine, prepared);
    return prepared;
  } catch (const PromptTooLong& error) {
    return problem("context_length_exceeded", concat(error.what(), "; ", error.hint()));
  } catch (const Error& error) {
    return problem("invalid_prompt", error.what());
  }
}

}  // namespace tessera
