#include "apps/answer/overflow.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "apps/options/sampling_options.h"
#include "engine/text/utf8.h"

namespace tessera {
namespace {

constexpr std::string_view kMark = "\n[...]\n";
// Of a text that loses its middle, at least so much is left.
constexpr int64_t kLeastLeftTokens = 32;

// The runs of tokens that are text, the longest first: special tokens keep their places.
std::vector<Range> texts_of(const Tokenizer& tokenizer, const std::vector<TokenId>& prompt) {
  std::vector<Range> texts(1);
  for (const TokenId token : prompt) {
    const int64_t next = texts.back().end + 1;
    // What lies outside the tokenizer is no text either; the engine refuses it.
    const bool is_text = token >= 0 && token < tokenizer.size() && !tokenizer.is_special(token);
    if (is_text) {
      texts.back().end = next;
    } else {
      texts.push_back({next, next});
    }
  }
  std::ranges::stable_sort(texts, std::ranges::greater(), &Range::size);
  return texts;
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
Range middle_of(const Tokenizer& tokenizer, const std::vector<TokenId>& prompt, const Range& text,
                int64_t count) {
  const auto is_torn = [&](int64_t at) {
    return is_inside_character(tokenizer, prompt[static_cast<size_t>(at)]);
  };
  int64_t begin = text.begin + (text.size() - count) / 2;
  int64_t end = begin + count;
  while (begin > text.begin && is_torn(begin)) --begin;
  while (end < text.end && is_torn(end)) ++end;
  return {begin, end};
}

}  // namespace

int64_t LeftOut::num_tokens() const {
  int64_t count = 0;
  for (const Range& range : ranges) count += range.size();
  return count;
}

std::string LeftOut::text() const {
  const std::string what = ranges.size() == 1
                               ? "its tokens " + ranges.front().text()
                               : concat("the middles of its ", ranges.size(), " longest texts");
  return concat("the prompt does not fit: ", what, " (", counted(num_tokens(), "token"),
                ") were left out");
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
  if (demand.fits()) return {std::move(prompt), {}};
  const Tokenizer& tokenizer = engine.tokenizer();
  const std::vector<TokenId> mark = tokenizer.encode(kMark, /*at_start=*/false);
  const int64_t room = demand.context_size - answer_room(params, demand.context_size);
  std::vector<Range> texts = texts_of(tokenizer, prompt);
  // As few texts as will do; `left` counts what stays of all of them.
  int64_t left = room - demand.prompt_tokens;
  int64_t num_cut = 0;
  do {
    if (num_cut == std::ssize(texts)) {
      throw PromptTooLong(demand.problem(), "without its middle it would not fit either");
    }
    left += texts[static_cast<size_t>(num_cut)].size() - std::ssize(mark);
    ++num_cut;
  } while (left < num_cut * kLeastLeftTokens);
  texts.resize(static_cast<size_t>(num_cut));
  std::ranges::sort(texts, {}, &Range::begin);
  FittedPrompt fitted;
  auto rest = prompt.begin();
  for (const Range& text : texts) {
    const Range cut = middle_of(tokenizer, prompt, text, text.size() - left / num_cut);
    fitted.tokens.insert(fitted.tokens.end(), rest, prompt.begin() + cut.begin);
    fitted.tokens.insert(fitted.tokens.end(), mark.begin(), mark.end());
    fitted.left_out.ranges.push_back(cut);
    rest = prompt.begin() + cut.end;
  }
  fitted.tokens.insert(fitted.tokens.end(), rest, prompt.end());
  return fitted;
}

}  // namespace tessera
