// Tells what a model thinks from what it answers: <think> ... </think> at the start of its text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/text/tokenizer.h"

namespace tessera {

// A text in its two parts, without the marks and the white space around them.
struct ThoughtAndAnswer {
  std::string thinking;
  std::string answer;
};

// Takes the text as it streams in, also where a mark comes in pieces. Thinking begins with <think>
// at the very start, behind white space at most: later the same characters are text. Without an end
// all that follows is thinking.
class ThinkingSplitter {
 public:
  // `is_thinking`: the prompt itself ends with the mark, so that the text begins behind it.
  explicit ThinkingSplitter(bool is_thinking = false)
      : state_(is_thinking ? State::kBlankThinking : State::kStart) {}

  // What `text` adds to either part, less what could still become a mark.
  ThoughtAndAnswer append(std::string_view text);
  // What was held back; call at the end of the text.
  ThoughtAndAnswer finish();

 private:
  enum class State : uint8_t {
    kStart,          // a mark may come
    kBlankThinking,  // behind <think>, nothing but white space yet
    kThinking,
    kBlankAnswer,  // behind </think>, nothing but white space yet
    kAnswer,
  };

  void drop_white_space(State next);
  void read_start();
  void read_thinking(ThoughtAndAnswer& parts);

  State state_;
  std::string pending_;
};

// The parts of a whole text.
ThoughtAndAnswer split_thinking(std::string_view text, bool is_thinking);

// Whether the prompt ends with <think>, behind which white space may stand.
bool ends_in_thinking(const Tokenizer& tokenizer, std::span<const TokenId> prompt);

}  // namespace tessera
