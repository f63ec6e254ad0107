#include "apps/answer/needed_context.h"

#include "apps/answer/answer.h"

namespace tessera {

PromptCounter::PromptCounter(const EngineOptions& options, const Console& console)
    : options_(options),
      console_(console),
      folder_(read_model_folder(options)),
      tokenizer_(Tokenizer::load(folder_)) {}

int64_t PromptCounter::text_tokens(std::string_view text) const {
  ProgressBar bar(console_, "counting tokens");
  return std::ssize(tokenizer_->encode_prompt(text, interruptible(bar)));
}

int64_t PromptCounter::chat_tokens(std::span<const Message> messages,
                                   std::optional<bool> thinks) const {
  const auto chat_template = ChatTemplate::choose(options_.chat_template, folder_, *tokenizer_,
                                                  options_.template_arguments);
  ProgressBar bar(console_, "counting tokens");
  return std::ssize(chat_template.encode(
      *tokenizer_, messages, thinking_inputs(chat_template, thinks), interruptible(bar)));
}

int64_t PromptCounter::context_size(int64_t prompt_tokens, const SamplingOptions& sampling) const {
  const SamplingParams params = resolve_sampling(sampling, default_sampling(folder_.generation));
  const int64_t answer = params.max_tokens > 0 ? params.max_tokens : kUsualAnswerTokens;
  const int64_t needed = prompt_tokens + answer;
  return needed > folder_.config.max_position_embeddings ? needed : 0;
}

}  // namespace tessera
