#include "apps/summarize/instruction.h"

#include "engine/engine.h"

namespace tessera {
namespace {

std::string style_text(SummaryStyle style) {
  switch (style) {
    case SummaryStyle::kFree:
      return "Summarize the following document.";
    case SummaryStyle::kBullets:
      return "Summarize the following document in bullet points.";
    case SummaryStyle::kParagraph:
      return "Summarize the following document in one paragraph.";
    case SummaryStyle::kFacts:
      return "List the key facts of the following document.";
  }
  return "";
}

}  // namespace

std::string Instruction::text() const {
  std::string text = own_text.empty() ? style_text(style) : own_text;
  if (words > 0) text += concat(" Use at most ", counted(words, "word"), ".");
  if (!focus.empty()) text += " Say above all what answers this question: " + focus;
  return text;
}

}  // namespace tessera
