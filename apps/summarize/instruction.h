// What is asked of a document.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

enum class SummaryStyle : uint8_t { kFree, kBullets, kParagraph, kFacts };

struct Instruction {
  SummaryStyle style = SummaryStyle::kFree;
  int64_t words = 0;     // at most, as the model counts them; 0: as many as it likes
  std::string focus;     // a question that the summary should answer
  std::string own_text;  // instead of what the style says; "" for none

  // Stands before the document in every prompt, also before summaries that are merged: a merge is
  // the summary of a shorter document. The same in every call, so that it is computed once.
  std::string text() const;
};

}  // namespace tessera
