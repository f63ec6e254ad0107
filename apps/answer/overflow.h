// Prompts that do not fit the context, where a person allowed to leave something out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/answer/range.h"
#include "engine/engine.h"

namespace tessera {

// What of a prompt the model does not read.
struct LeftOut {
  std::vector<Range> ranges;  // of tokens of the whole prompt, in their order; empty: it reads all

  int64_t num_tokens() const;
  // "the prompt does not fit: its tokens 100 to 299 (200 tokens) were left out", or of several
  // ranges "the middles of its 2 longest texts".
  std::string text() const;
};

struct FittedPrompt {
  std::vector<TokenId> tokens;
  LeftOut left_out;
};

// As Engine::encode_chat and Engine::encode_text, for texts of any length.
std::vector<TokenId> encode_long_chat(const Engine& engine, std::span<const Message> messages,
                                      const ChatInputs& inputs, const EncodeProgress& progress);
std::vector<TokenId> encode_long_text(const Engine& engine, std::string_view text,
                                      const EncodeProgress& progress);

// The prompt if it fits. Else the longest text in it, which is the longest message of a chat, loses
// its middle to a "[...]", so that there is room for params.max_tokens, and where these are not
// given for an answer of the usual length. Where too little would be left of that text, the next
// longest ones are cut to the same length. Throws PromptTooLong with the numbers where what would
// be left of all texts is too short to be worth it.
FittedPrompt leave_out_middle(const Engine& engine, std::vector<TokenId> prompt,
                              const SamplingParams& params);

}  // namespace tessera
