// Tells what a model thinks from what it answers: <think> ... </think>, or marks of its own, at the
// start of its text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/text/thinking_marks.h"
#include "engine/text/tokenizer.h"

namespace tessera {

// A text in its two parts, without the marks and the white space around them.
struct ThoughtAndAnswer {
  std::string thinking;
  std::string answer;
};

// How a text begins that a model writes behind a prompt.
struct ThinkingStart {
  ThinkingMarks marks = kThinkingMarks.back();
  bool is_thinking = false;  // the prompt itself ends with the mark: the text begins behind it
};

// Takes the text as it streams in, also where a mark comes in pieces. Thinking begins with the mark
// at the very start, behind white space at most: later the same characters are text. Without an end
// all that follows is thinking.
class ThinkingSplitter {
 public:
  explicit ThinkingSplitter(const ThinkingStart& start = {})
      : marks_(start.marks), state_(start.is_thinking ? State::kBlankThinking : State::kStart) {}

  // What `text` adds to either part, less what could still become a mark.
  ThoughtAndAnswer append(std::string_view text);
  // What was held back; call at the end of the text.
  ThoughtAndAnswer finish();

 private:
  enum class State : uint8_t {
    kStart,          // a mark may come
    kBlankThinking,  // behind marks.begin, nothing but white space yet
    kThinking,
    kBlankAnswer,  // behind marks.end, nothing but white space yet
    kAnswer,
  };

  void drop_white_space(State next);
  void read_start();
  void read_thinking(ThoughtAndAnswer& parts);

  ThinkingMarks marks_;
  State state_;
  std::string pending_;
};

// The parts of a whole text.
ThoughtAndAnswer split_thinking(std::string_view text, const ThinkingStart& start);

// How the text behind the prompt of a chat begins. The marks are those that the tokenizer has as
// tokens, else <think>; behind one that the prompt ends with, white space may stand.
ThinkingStart thinking_start(const Tokenizer& tokenizer, std::span<const TokenId> prompt);

}  // namespace tessera
