#include "apps/summarize/cuts.h"

#include <algorithm>
#include <array>

#include "engine/text/utf8.h"

namespace tessera {
namespace {

// How far one looks back over white space and closing marks.
constexpr size_t kLookBack = 64;
constexpr std::string_view kSpaces = " \t\r\n\v\f";
constexpr std::array<std::string_view, 7> kSentenceEnds = {".", "!", "?", "…", "。", "！", "？"};
constexpr std::array<std::string_view, 9> kClosers = {"\"", "'", ")", "]", "*",
                                                      "”",  "’", "»", "」"};

bool is_space(char byte) { return kSpaces.find(byte) != std::string_view::npos; }

// Takes one of the marks from the end of `text`.
template <size_t kCount>
bool take_last(std::string_view& text, const std::array<std::string_view, kCount>& marks) {
  const auto mark = std::ranges::find_if(marks, [&](auto end) { return text.ends_with(end); });
  if (mark != marks.end()) text.remove_suffix(mark->size());
  return mark != marks.end();
}

// What is left without the white space at the end, of which `line_ends` are counted.
std::string_view without_spaces(std::string_view text, int& line_ends) {
  while (!text.empty() && is_space(text.back())) {
    line_ends += text.back() == '\n' ? 1 : 0;
    text.remove_suffix(1);
  }
  return text;
}

bool ends_sentence(std::string_view text, bool is_before_space) {
  while (take_last(text, kClosers)) {
  }
  const bool is_wide = text.ends_with("。") || text.ends_with("！") || text.ends_with("？");
  return (is_before_space || is_wide) && take_last(text, kSentenceEnds);
}

}  // namespace

CutKind cut_kind(std::string_view text, size_t at) {
  if (at == 0 || at >= text.size()) return CutKind::kParagraph;
  if (is_utf8_continuation(text[at])) return CutKind::kNone;
  if (text[at - 1] == '\r' && text[at] == '\n') return CutKind::kNone;
  const size_t begin = at - std::min(at, kLookBack);
  int line_ends = 0;
  const std::string_view before = without_spaces(text.substr(begin, at - begin), line_ends);
  const bool is_behind_space = is_space(text[at - 1]);
  const bool is_at_space = is_space(text[at]);
  if (line_ends >= 2 && !is_at_space) return CutKind::kParagraph;
  if (line_ends >= 1 && !is_at_space) return CutKind::kSentence;
  if (ends_sentence(before, is_behind_space || is_at_space)) return CutKind::kSentence;
  return is_behind_space || is_at_space ? CutKind::kWord : CutKind::kCharacter;
}

int64_t TokenCuts::byte_of(int64_t cut) const {
  if (cut <= 0) return 0;
  if (cut >= num_tokens()) return static_cast<int64_t>(text_.size());
  return map_.ends[static_cast<size_t>(cut - 1)];
}

CutKind TokenCuts::kind_of(int64_t cut) const {
  if (cut <= 0 || cut >= num_tokens()) return CutKind::kParagraph;
  const auto index = static_cast<size_t>(cut);
  if (map_.ends[index - 1] == map_.ends[index]) return CutKind::kNone;
  return map_.ends[index - 1] == 0 ? CutKind::kNone : cut_kind(text_, map_.ends[index - 1]);
}

int64_t TokenCuts::first_character_end(int64_t cut) const {
  while (kind_of(cut) == CutKind::kNone) ++cut;
  return cut;
}

int64_t TokenCuts::last_cut(int64_t begin, int64_t limit) const {
  const int64_t half = begin + (limit - begin) / 2;
  int64_t best = limit;
  CutKind best_kind = CutKind::kNone;
  // Below the half only for want of any cut.
  for (int64_t cut = limit; cut > begin && (cut > half || best_kind == CutKind::kNone); --cut) {
    const CutKind kind = kind_of(cut);
    if (kind <= best_kind) continue;
    best = cut;
    best_kind = kind;
  }
  return first_character_end(best);
}

int64_t TokenCuts::first_cut(int64_t low, int64_t high) const {
  int64_t best = high;
  CutKind best_kind = CutKind::kNone;
  for (int64_t cut = low; cut < high && best_kind < CutKind::kSentence; ++cut) {
    const CutKind kind = kind_of(cut);
    if (kind <= best_kind) continue;
    best = cut;
    best_kind = kind;
  }
  return first_character_end(best);
}

}  // namespace tessera
