// How long a context the prompt at hand needs, found before a weight is read: what --rope-scaling
// auto asks for where no -c is given (prompt_chooses_context).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "apps/options/sampling_options.h"
#include "apps/terminal/console.h"
#include "engine/engine.h"

namespace tessera {

class PromptCounter {
 public:
  // Reads what makes tokens of texts. Throws Error as Engine::load does for these files.
  PromptCounter(const EngineOptions& options, const Console& console);

  // Tokens of the prompts that Engine::encode_text and Engine::encode_chat make, of any length.
  // Shows progress. Throws as these do, and Interrupted.
  int64_t text_tokens(std::string_view text) const;
  int64_t chat_tokens(std::span<const Message> messages, std::optional<bool> thinks) const;

  // The EngineOptions::context_size that a prompt of so many tokens needs with its answer, for
  // which max_tokens are reserved and, where these are not given, kUsualAnswerTokens. 0, the
  // model's own context, where that holds both.
  int64_t context_size(int64_t prompt_tokens, const SamplingOptions& sampling) const;

 private:
  const EngineOptions& options_;
  const Console& console_;
  ModelFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace tessera
