#include "apps/answer/overflow.h"

#include <algorithm>
#include <utility>

#include "apps/answer/range.h"
#include "apps/options/sampling_options.h"
#include "engine/text/utf8.h"

namespace tessera {
namespace {

constexpr std::string_view kMark = "\n[...]\n";
// Of a text that loses its middle, at least so much is left.
constexpr int64_t kLeastLeftTokens = 32;

// The longest run of tokens that are text: special tokens keep their places.
Range longest_text(const Tokenizer& tokenizer, const std::vector<TokenId>& prompt) {
  Range longest;
  Range run;
  for (const TokenId token : prompt) {
    ++run.end;
    // What lies outside the tokenizer is no text either; the engine refuses it.
    if (token < 0 || token >= tokenizer.size() || tokenizer.is_special(token)) run.begin = run.end;
    if (run.size() > longest.size()) longest = run;
  }
  return longest;
}

bool is_inside_character(const Tokenizer& tokenizer, TokenId token) {
  const std::string bytes = tokenizer.token_bytes(token, /*is_first=*/false);
  return !bytes.empty() && is_utf8_continuation(bytes.front());
}

// An answer of which nobody said how long it may be gets at most a quarter of the context.
int64_t answer_room(const SamplingParams& params, int64_t context_size) {
  return params.max_tokens > 0 ? params.max_tokens : std::min(kUsualAnswerTokens, context_size / 4);
}

// `count` tokens or a few more out of the middle of `text`, so that no character is torn.
LeftOut middle_of(const Tokenizer& tokenizer, const std::vector<TokenId>& prompt, const Range& text,
                  int64_t count) {
  const auto is_torn = [&](int64_t at) {
    return is_inside_character(tokenizer, prompt[static_cast<size_t>(at)]);
  };
  int64_t begin = text.begin + (text.size() - count) / 2;
  int64_t end = begin + count;
  while (begin > text.begin && is_torn(begin)) --begin;
  while (end < text.end && is_torn(end)) ++end;
  return {begin, end - begin};
}

}  // namespace

std::string LeftOut::text() const {
  return concat("the prompt does not fit: its tokens ", Range{begin, begin + count}.text(), " (",
                counted(count, "token"), ") were left out");
}

std::vector<TokenId> encode_long_chat(const Engine& engine, std::span<const Message> messages,
                                      const ChatInputs& inputs, const EncodeProgress& progress) {
  return engine.chat_template().encode(engine.tokenizer(), messages, inputs, progress);
}

std::vector<TokenId> encode_long_text(const Engine& engine, std::string_view text,
                                      const EncodeProgress& progress) {
  return engine.tokenizer().encode_prompt(text, progress);
}

FittedPrompt leave_out_middle(const Engine& engine, std::vector<TokenId> prompt,
                              const SamplingParams& params) {
  const ContextDemand demand = engine.context_demand(prompt, params);
  if (demand.fits()) return {std::move(prompt), std::nullopt};
  const Tokenizer& tokenizer = engine.tokenizer();
  const std::vector<TokenId> mark = tokenizer.encode(kMark, /*at_start=*/false);
  const int64_t room = demand.context_size - answer_room(params, demand.context_size);
  const int64_t excess = demand.prompt_tokens + static_cast<int64_t>(mark.size()) - room;
  const Range text = longest_text(tokenizer, prompt);
  if (text.size() - excess < kLeastLeftTokens) {
    throw PromptTooLong(demand.problem(), "without its middle it would not fit either");
  }
  const LeftOut left_out = middle_of(tokenizer, prompt, text, excess);
  const auto middle = prompt.begin() + left_out.begin;
  prompt.insert(prompt.erase(middle, middle + left_out.count), mark.begin(), mark.end());
  return {std::move(prompt), left_out};
}

}  // namespace tessera
