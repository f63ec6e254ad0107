#include "engine/text/thinking_splitter.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

// Bytes at the end of `text` that a mark may go on from, with the white space before them: at the
// end of thinking it is dropped.
size_t held_bytes(std::string_view text, std::string_view end_mark) {
  size_t mark = std::min(end_mark.size() - 1, text.size());
  while (!text.ends_with(end_mark.substr(0, mark))) --mark;
  const std::string_view before = text.substr(0, text.size() - mark);
  return text.size() - (before.find_last_not_of(kWhiteSpace) + 1);
}

}  // namespace

ThoughtAndAnswer ThinkingSplitter::append(std::string_view text) {
  ThoughtAndAnswer parts;
  pending_ += text;
  if (state_ == State::kStart) read_start();
  if (state_ == State::kBlankThinking) drop_white_space(State::kThinking);
  if (state_ == State::kThinking) read_thinking(parts);
  if (state_ == State::kBlankAnswer) drop_white_space(State::kAnswer);
  if (state_ == State::kAnswer) parts.answer = std::exchange(pending_, "");
  return parts;
}

ThoughtAndAnswer ThinkingSplitter::finish() {
  const bool is_thinking = state_ == State::kThinking || state_ == State::kBlankThinking;
  std::string rest = std::exchange(pending_, "");
  if (!is_thinking) return {.thinking = "", .answer = std::move(rest)};
  rest.resize(rest.find_last_not_of(kWhiteSpace) + 1);
  return {.thinking = std::move(rest), .answer = ""};
}

// Goes to `next` where more than white space has come.
void ThinkingSplitter::drop_white_space(State next) {
  pending_.erase(0, std::min(pending_.find_first_not_of(kWhiteSpace), pending_.size()));
  if (!pending_.empty()) state_ = next;
}

void ThinkingSplitter::read_start() {
  const size_t begin = std::min(pending_.find_first_not_of(kWhiteSpace), pending_.size());
  const std::string_view text = std::string_view(pending_).substr(begin);
  if (text.starts_with(marks_.begin)) {
    pending_.erase(0, begin + marks_.begin.size());
    state_ = State::kBlankThinking;
  } else if (!marks_.begin.starts_with(text)) {
    state_ = State::kAnswer;
  }
}

void ThinkingSplitter::read_thinking(ThoughtAndAnswer& parts) {
  const size_t end = pending_.find(marks_.end);
  if (end == std::string::npos) {
    parts.thinking = pending_.substr(0, pending_.size() - held_bytes(pending_, marks_.end));
    pending_.erase(0, parts.thinking.size());
    return;
  }
  parts.thinking = pending_.substr(0, end);
  parts.thinking.resize(parts.thinking.find_last_not_of(kWhiteSpace) + 1);
  pending_.erase(0, end + marks_.end.size());
  state_ = State::kBlankAnswer;
}

ThoughtAndAnswer split_thinking(std::string_view text, const ThinkingStart& start) {
  ThinkingSplitter splitter(start);
  ThoughtAndAnswer parts = splitter.append(text);
  const ThoughtAndAnswer rest = splitter.finish();
  parts.thinking += rest.thinking;
  parts.answer += rest.answer;
  return parts;
}

namespace {

ThinkingMarks marks_of(const Tokenizer& tokenizer) {
  for (const ThinkingMarks& marks : kThinkingMarks) {
    if (tokenizer.special_token(marks.begin)) return marks;
  }
  return kThinkingMarks.back();
}

bool ends_with_mark(const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                    std::string_view mark) {
  constexpr size_t kMaxMarkTokens = 24;  // a token a byte, and white space
  std::string tail;
  for (const TokenId token : prompt.last(std::min(prompt.size(), kMaxMarkTokens))) {
    tail += tokenizer.is_special(token) ? tokenizer.piece(token)
                                        : tokenizer.token_bytes(token, /*is_first=*/false);
  }
  tail.resize(tail.find_last_not_of(kWhiteSpace) + 1);
  return tail.ends_with(mark);
}

}  // namespace

ThinkingStart thinking_start(const Tokenizer& tokenizer, std::span<const TokenId> prompt) {
  const ThinkingMarks marks = marks_of(tokenizer);
  return {.marks = marks, .is_thinking = ends_with_mark(tokenizer, prompt, marks.begin)};
}

}  // namespace tessera
