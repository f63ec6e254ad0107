// A model's answer on standard output, as it comes.
#pragma once

#include <string_view>

#include "apps/terminal/console.h"
#include "apps/terminal/word_wrap.h"

namespace tessera {

enum class LineBreaks : bool { kAsGenerated, kAtWords };

struct AnswerStyle {
  LineBreaks breaks = LineBreaks::kAsGenerated;
  bool has_thinking = true;     // marks of thinking count: the prompt is a chat's
  bool shows_thinking = false;  // also where standard output is no terminal
};

class AnswerPrinter {
 public:
  // With breaks at words, lines end with whole words where standard output is a terminal.
  AnswerPrinter(const AnswerStyle& style, const Console& console);

  // Whole characters of UTF-8. What is thought comes before what is answered, dim where there are
  // colours, and an empty line parts them.
  void write_thinking(std::string_view text);
  void write(std::string_view text);
  // The word held back, and a newline where the text does not end with one.
  void finish();

 private:
  void put(std::string_view text);
  // In the colour of the part that it belongs to.
  void print_part(std::string_view text) const;

  bool wraps_;
  bool shows_thinking_;
  bool dims_thinking_;
  bool is_thinking_ = false;
  bool ends_with_newline_ = true;
  WordWrap wrap_;
};

}  // namespace tessera
