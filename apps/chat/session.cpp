#include "apps/chat/session.h"

#include <utility>

namespace tessera {
namespace {

constexpr std::string_view kSeedName = "seed";

}  // namespace

ChatSession::ChatSession(Engine& engine, const ChatOptions& options, Conversation opening,
                         const Console& console)
    : engine_(engine),
      options_(options),
      console_(console),
      sampling_options_(options.sampling),
      params_(resolve_sampling(options.sampling, engine.default_sampling())),
      has_seed_(options.sampling.seed || params_.temperature != 0.0),
      stats_(options.stats_path),
      branches_(engine, std::move(opening)),
      shows_stats_(options.shows_stats) {
  if (options.thinking.thinks) set_thinking(*options.thinking.thinks);
}

void ChatSession::set_thinking(bool thinks) {
  inputs_ = thinking_inputs(engine_, thinks, console_);
  if (!inputs_.arguments.empty()) thinks_ = thinks;
}

void ChatSession::set_sampling(const SamplingField& field, const std::string& text) {
  SamplingOptions changed = sampling_options_;
  set_sampling_field(changed, field, std::string(field.name), text);
  SamplingParams params = resolve_sampling(changed, engine_.default_sampling());
  const bool sets_seed = field.name == kSeedName;
  // A seed stays until another is set: the one given at the start would repeat answers that /regen
  // has replaced.
  if (has_seed_ && !sets_seed) params.seed = params_.seed;
  has_seed_ = (has_seed_ && !sets_seed) || changed.seed || params.temperature != 0.0;
  params_ = params;
  sampling_options_ = changed;
}

void ChatSession::ask(const std::string& text) {
  if (conversation().ends_with_question()) {
    throw Error("the last message has no answer yet", "/regen answers it, /undo takes it back");
  }
  Conversation next = conversation();
  next.add({Role::kUser, checked_utf8(text, "your message", options_.invalid_utf8)});
  answer(std::move(next));
}

void ChatSession::answer_again() {
  Conversation next = conversation();
  CHECK(next.drop_answer(), "there is no message to answer yet");
  // The same seed would give the same answer.
  ++params_.seed;
  const bool had_answer = !conversation().ends_with_question();
  const std::string before = had_answer ? conversation().messages().back().content : "";
  answer(std::move(next));
  const bool is_same = had_answer && conversation().messages().back().content == before;
  if (params_.temperature == 0.0 && is_same) {
    console_.say("temperature is 0: the same prompt has the same answer; try /set temperature 0.8");
  }
}

std::optional<std::string> ChatSession::last_stats() const { return last_stats_; }

bool ChatSession::has_new_question(const Conversation& next) const {
  return next.messages().size() > conversation().messages().size();
}

void ChatSession::answer(Conversation conversation) {
  const FittedPrompt prompt = fitted(conversation);
  const auto [result, text] = stream_answer(
      engine_, *branches_.current().sequence, prompt.tokens, params_,
      {.breaks = LineBreaks::kAtWords, .shows_thinking = options_.thinking.is_shown}, console_);
  last_stats_ = stats_line(engine_, result, params_);
  if (shows_stats_) console_.say_dim(*last_stats_);
  if (result.stop_reason == StopReason::kCancelled && text.answer.empty()) {
    console_.say(concat("stopped before the answer began: ",
                        has_new_question(conversation) ? "your message was taken back"
                                                       : "the conversation stays as it was"));
  } else {
    conversation.add(
        {.role = Role::kAssistant, .content = text.answer, .reasoning = text.thinking});
    branches_.current().conversation = std::move(conversation);
  }
  if (result.stop_reason == StopReason::kContextFull) {
    const std::string longer = engine_.text_limit().longer_context;
    console_.say(concat("/undo takes back the last exchange, /clear starts afresh",
                        longer.empty() ? "" : concat("; ", longer, " gives more room")));
  }
  // Last: an answer that was given is part of the conversation, whether or not this can be written.
  nlohmann::ordered_json stats = stats_json(engine_, options_.engine, result, params_);
  if (!prompt.left_out.ranges.empty()) stats["left_out"] = left_out_json(prompt.left_out);
  stats_.write(stats);
}

FittedPrompt ChatSession::fitted(const Conversation& conversation) const {
  const bool may_cut = options_.on_overflow == OnOverflow::kMiddle;
  try {
    std::vector<TokenId> prompt = encode(conversation);
    if (!may_cut) {
      check_room(prompt, conversation);
      return {std::move(prompt), {}};
    }
    FittedPrompt fitted = leave_out_middle(engine_, std::move(prompt), params_);
    if (!fitted.left_out.ranges.empty()) console_.say(fitted.left_out.text());
    return fitted;
  } catch (const PromptTooLong& error) {
    const std::string hint = hint_of_room(conversation);
    throw Error(error.what(), may_cut ? concat(error.hint(), "; ", hint) : hint);
  }
}

std::vector<TokenId> ChatSession::encode(const Conversation& conversation) const {
  ProgressBar bar(console_, "tokenising");
  if (options_.on_overflow == OnOverflow::kMiddle) {
    return encode_long_chat(engine_, conversation.continued({}), inputs_, interruptible(bar));
  }
  return engine_.encode_chat(conversation.continued({}), inputs_, interruptible(bar));
}

bool ChatSession::fits_when_cleared(Conversation conversation) const {
  const Message question = conversation.messages().back();
  conversation.clear();
  conversation.add(question);
  try {
    std::vector<TokenId> prompt = encode(conversation);
    if (options_.on_overflow == OnOverflow::kMiddle) {
      prompt = leave_out_middle(engine_, std::move(prompt), params_).tokens;
    }
    return engine_.context_demand(prompt, params_).fits();
  } catch (const PromptTooLong&) {
    return false;
  }
}

std::string ChatSession::hint_of_room(const Conversation& conversation) const {
  if (this->conversation().has_question() && fits_when_cleared(conversation)) {
    return "/undo takes back the last exchange, /clear forgets all of them";
  }
  const size_t question_bytes = conversation.messages().back().content.size();
  const bool is_system_longer = conversation.system().size() > question_bytes;
  std::string flags = engine_.text_limit().longer_context;
  if (options_.on_overflow != OnOverflow::kMiddle) {
    flags += concat(flags.empty() ? "" : " or ", "--on-overflow middle");
  }
  return concat(
      is_system_longer ? "/system TEXT sets a shorter system message" : "send a shorter message",
      flags.empty() ? "" : concat(", or start with ", flags));
}

void ChatSession::check_room(std::span<const TokenId> prompt,
                             const Conversation& conversation) const {
  const ContextDemand demand = engine_.context_demand(prompt, params_);
  if (demand.fits()) return;
  const bool is_first = !this->conversation().has_question();
  const int64_t room = demand.context_size - demand.prompt_tokens;
  std::string problem = room > 0   ? "an answer of max_tokens does not fit in the context"
                        : is_first ? "your message does not fit in the context"
                                   : "the context is full";
  if (!is_first && has_new_question(conversation)) problem += ", so your message was not kept";
  std::string hint = hint_of_room(conversation);
  if (room > 0) hint = concat("/set max_tokens ", room, " asks for a shorter answer; ", hint);
  throw Error(concat(problem, ": the conversation would take ", demand.prompt_tokens,
                     " tokens and its answer ", demand.answer_tokens, ", of ", demand.context_size),
              hint);
}

}  // namespace tessera
