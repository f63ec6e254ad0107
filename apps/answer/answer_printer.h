// A model's answer on standard output, as it comes.
#pragma once

#include <string_view>

#include "apps/terminal/word_wrap.h"

namespace tessera {

enum class LineBreaks : bool { kAsGenerated, kAtWords };

class AnswerPrinter {
 public:
  // kAtWords: where standard output is a terminal, lines end with whole words.
  explicit AnswerPrinter(LineBreaks breaks);

  // Whole characters of UTF-8.
  void write(std::string_view text);
  // The word held back, and a newline where the text does not end with one.
  void finish();

 private:
  bool wraps_;
  bool ends_with_newline_ = true;
  WordWrap wrap_;
};

}  // namespace tessera
