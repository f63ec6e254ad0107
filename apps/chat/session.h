// A chat in progress: the conversation, how to sample, and the KV cache that follows it.
#pragma once

#include <optional>
#include <string>

#include "apps/answer/answer.h"
#include "apps/chat/branches.h"
#include "apps/files/conversation.h"
#include "apps/files/text_input.h"
#include "apps/options/overflow_option.h"
#include "apps/options/sampling_options.h"
#include "apps/options/template_options.h"
#include "apps/terminal/console.h"

namespace tessera {

struct ChatOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  ThinkingOptions thinking;
  std::string kv_path;                          // of --kv; "" for none
  OnOverflow on_overflow = OnOverflow::kError;  // kMiddle: the longest message loses its own
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kRefuse;
  bool shows_stats = false;   // after each answer
  bool keeps_history = true;  // of what was typed, for later chats
  std::string stats_path;
};

class ChatSession {
 public:
  // `engine`, `options` and `console` must outlive the session, which goes on from `opening`.
  ChatSession(Engine& engine, const ChatOptions& options, Conversation opening,
              const Console& console);

  const Console& console() const { return console_; }
  const Engine& engine() const { return engine_; }
  Engine& engine() { return engine_; }
  const EngineOptions& engine_options() const { return options_.engine; }
  InvalidUtf8 invalid_utf8() const { return options_.invalid_utf8; }
  Branches& branches() { return branches_; }
  // That of the current branch.
  Conversation& conversation() { return branches_.current().conversation; }
  // What the chat template is given beside it.
  const ChatInputs& inputs() const { return inputs_; }

  // The parameters of the next answer.
  const SamplingParams& sampling() const { return params_; }
  // Sets one of them as /set does. Throws Error; nothing is then changed.
  void set_sampling(const SamplingField& field, const std::string& text);

  // Whether the model thinks before it answers; without a value as its template does. Says so where
  // the template has no such switch.
  std::optional<bool> thinks() const { return thinks_; }
  void set_thinking(bool thinks);

  // Adds what the person said, after a check of its UTF-8, and streams the answer. The conversation
  // stays as it was when this throws Error before the answer is complete, or is stopped before it
  // begins; once both are kept, an Error says that their statistics could not be written.
  void ask(const std::string& text);

  // Replaces the last answer by another one, in the same way. Throws Error when there is nothing to
  // answer.
  void answer_again();

  // Statistics of the last answer, if there was one.
  std::optional<std::string> last_stats() const;
  // Whether they are shown after each answer.
  bool shows_stats() const { return shows_stats_; }
  void show_stats(bool shown) { shows_stats_ = shown; }

 private:
  // Whether `next`, which is to follow the conversation, asks something besides.
  bool has_new_question(const Conversation& next) const;
  // Answers `conversation`, which ends with a question, and makes it the session's own.
  void answer(Conversation conversation);
  // The prompt that fits, after the choice of options_.on_overflow. Says what it leaves out. Throws
  // Error, with what a person can do about it, when there is none, or Interrupted.
  FittedPrompt fitted(const Conversation& conversation) const;
  // The prompt, with progress. Throws PromptTooLong when it cannot fit, or Interrupted.
  std::vector<TokenId> encode(const Conversation& conversation) const;
  const Conversation& conversation() const { return branches_.current().conversation; }
  // Whether the question that `conversation` ends with would have room without those before it.
  bool fits_when_cleared(Conversation conversation) const;
  // What a person can do about a context without room for `conversation`.
  std::string hint_of_room(const Conversation& conversation) const;
  // Throws Error with the numbers and the ways out when the context has no room for an answer.
  void check_room(std::span<const TokenId> prompt, const Conversation& conversation) const;

  Engine& engine_;
  const ChatOptions& options_;
  const Console& console_;
  SamplingOptions sampling_options_;
  SamplingParams params_;
  bool has_seed_;  // that of params_ was given or drawn
  std::optional<bool> thinks_;
  ChatInputs inputs_;
  StatsFile stats_;
  Branches branches_;
  bool shows_stats_;
  std::optional<std::string> last_stats_;
};

}  // namespace tessera
