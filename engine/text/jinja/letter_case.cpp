// Upper and lower case as Python's strings have them.
#include <utf8proc.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/text_operations.h"

namespace tessera::jinja {
namespace {

// Letters whose capitals are several, each with these behind it, as SpecialCasing.txt of Unicode
// has them; of all others utf8proc says what Python says.
constexpr std::u32string_view kCapitals =
    U" \u00DFSS \u0149\u02BCN \u01F0J\u030C \u0390\u0399\u0308\u0301 \u03B0\u03A5\u0308\u0301 "
    U"\u0587\u0535\u0552 \u1E96H\u0331 \u1E97T\u0308 \u1E98W\u030A \u1E99Y\u030A \u1E9AA\u02BE "
    U"\u1F50\u03A5\u0313 \u1F52\u03A5\u0313\u0300 \u1F54\u03A5\u0313\u0301 "
    U"\u1F56\u03A5\u0313\u0342 \u1F80\u1F08\u0399 \u1F81\u1F09\u0399 \u1F82\u1F0A\u0399 "
    U"\u1F83\u1F0B\u0399 \u1F84\u1F0C\u0399 \u1F85\u1F0D\u0399 \u1F86\u1F0E\u0399 "
    U"\u1F87\u1F0F\u0399 \u1F88\u1F08\u0399 \u1F89\u1F09\u0399 \u1F8A\u1F0A\u0399 "
    U"\u1F8B\u1F0B\u0399 \u1F8C\u1F0C\u0399 \u1F8D\u1F0D\u0399 \u1F8E\u1F0E\u0399 "
    U"\u1F8F\u1F0F\u0399 \u1F90\u1F28\u0399 \u1F91\u1F29\u0399 \u1F92\u1F2A\u0399 "
    U"\u1F93\u1F2B\u0399 \u1F94\u1F2C\u0399 \u1F95\u1F2D\u0399 \u1F96\u1F2E\u0399 "
    U"\u1F97\u1F2F\u0399 \u1F98\u1F28\u0399 \u1F99\u1F29\u0399 \u1F9A\u1F2A\u0399 "
    U"\u1F9B\u1F2B\u0399 \u1F9C\u1F2C\u0399 \u1F9D\u1F2D\u0399 \u1F9E\u1F2E\u0399 "
    U"\u1F9F\u1F2F\u0399 \u1FA0\u1F68\u0399 \u1FA1\u1F69\u0399 \u1FA2\u1F6A\u0399 "
    U"\u1FA3\u1F6B\u0399 \u1FA4\u1F6C\u0399 \u1FA5\u1F6D\u0399 \u1FA6\u1F6E\u0399 "
    U"\u1FA7\u1F6F\u0399 \u1FA8\u1F68\u0399 \u1FA9\u1F69\u0399 \u1FAA\u1F6A\u0399 "
    U"\u1FAB\u1F6B\u0399 \u1FAC\u1F6C\u0399 \u1FAD\u1F6D\u0399 \u1FAE\u1F6E\u0399 "
    U"\u1FAF\u1F6F\u0399 \u1FB2\u1FBA\u0399 \u1FB3\u0391\u0399 \u1FB4\u0386\u0399 "
    U"\u1FB6\u0391\u0342 \u1FB7\u0391\u0342\u0399 \u1FBC\u0391\u0399 \u1FC2\u1FCA\u0399 "
    U"\u1FC3\u0397\u0399 \u1FC4\u0389\u0399 \u1FC6\u0397\u0342 \u1FC7\u0397\u0342\u0399 "
    U"\u1FCC\u0397\u0399 \u1FD2\u0399\u0308\u0300 \u1FD3\u0399\u0308\u0301 \u1FD6\u0399\u0342 "
    U"\u1FD7\u0399\u0308\u0342 \u1FE2\u03A5\u0308\u0300 \u1FE3\u03A5\u0308\u0301 "
    U"\u1FE4\u03A1\u0313 \u1FE6\u03A5\u0342 \u1FE7\u03A5\u0308\u0342 \u1FF2\u1FFA\u0399 "
    U"\u1FF3\u03A9\u0399 \u1FF4\u038F\u0399 \u1FF6\u03A9\u0342 \u1FF7\u03A9\u0342\u0399 "
    U"\u1FFC\u03A9\u0399 \uFB00FF \uFB01FI \uFB02FL \uFB03FFI \uFB04FFL \uFB05ST \uFB06ST "
    U"\uFB13\u0544\u0546 \uFB14\u0544\u0535 \uFB15\u0544\u053B \uFB16\u054E\u0546 "
    U"\uFB17\u0544\u053D ";

constexpr char32_t kDottedCapitalI = 0x130;
constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;
constexpr char32_t kCapitalSharpS = 0x1E9E;  // of utf8proc; in Unicode's tables ß begins with Ss
constexpr char32_t kCapitalIota = 0x399;
constexpr char32_t kIotaBelow = 0x345;  // a mark: what becomes of an iota behind a capital

using CodePoints = std::pair<char32_t, char32_t>;  // from the first to the last

// Unicode's Other_Lowercase and Other_Uppercase: what has a case without being a cased letter.
constexpr CodePoints kOtherLowercase[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},    {0x2E0, 0x2E4},
    {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},  {0x1D9B, 0x1DBF},
    {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2170, 0x217F},  {0x24D0, 0x24E9},
    {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},  {0xAB5C, 0xAB5F},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};
constexpr CodePoints kOtherUppercase[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

template <size_t kSize>
bool is_in(char32_t c, const CodePoints (&ranges)[kSize]) {
  return std::ranges::any_of(
      ranges, [c](const CodePoints& range) { return c >= range.first && c <= range.second; });
}

// kTitle is that of letters such as U+01C5, of which the first half is a capital.
std::optional<LetterCase> case_of(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
      return LetterCase::kUpper;
    case UTF8PROC_CATEGORY_LL:
      return LetterCase::kLower;
    case UTF8PROC_CATEGORY_LT:
      return LetterCase::kTitle;
    default:
      if (is_in(c, kOtherLowercase)) return LetterCase::kLower;
      if (is_in(c, kOtherUppercase)) return LetterCase::kUpper;
      return std::nullopt;
  }
}

bool is_cased(char32_t c) { return case_of(c).has_value(); }

// The several capitals of a letter; empty where there is one.
std::u32string_view several_capitals(char32_t letter) {
  if (letter < 0x80 || !is_cased(letter)) return {};
  const char32_t beginning[] = {U' ', letter};
  const size_t place = kCapitals.find(std::u32string_view(beginning, 2));
  if (place == std::u32string_view::npos) return {};
  return kCapitals.substr(place + 2, kCapitals.find(U' ', place + 2) - place - 2);
}

// Unicode's property Case_Ignorable: marks, modifiers and what may stand within a word.
bool is_case_ignorable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::u32string_view(
                 U"'.:"
                 U"\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E"
                 U"\uFF1A")
                 .find(c) != std::u32string_view::npos;
  }
}

// Writes the characters of a text one by one, in another case.
class CaseWriter {
 public:
  CaseWriter(std::string_view text, LetterCase letter_case)
      : text_(text), letter_case_(letter_case) {}

  std::string next(size_t begin, const Character& character) {
    const char32_t c = character.code_point;
    const LetterCase letter_case = case_at(begin);
    std::string bytes;
    if (c >= 0x80 && character.num_bytes == 1) {
      bytes = text_[begin];  // no character
    } else if (letter_case == LetterCase::kLower) {
      append_lower(c, begin + character.num_bytes, bytes);
    } else if (letter_case == LetterCase::kUpper) {
      append_upper(c, bytes);
    } else {
      append_title(c, bytes);
    }
    is_within_word_ = is_cased(c);
    if (!is_case_ignorable(c)) is_behind_cased_ = is_within_word_;
    return bytes;
  }

 private:
  // Words begin behind everything that has no case.
  LetterCase case_at(size_t begin) const {
    const bool is_capitalized = letter_case_ == LetterCase::kCapitalized;
    if (!is_capitalized && letter_case_ != LetterCase::kTitle) return letter_case_;
    const bool begins = is_capitalized ? begin == 0 : !is_within_word_;
    return begins ? LetterCase::kTitle : LetterCase::kLower;
  }

  static void append_upper(char32_t c, std::string& bytes) {
    const std::u32string_view several = several_capitals(c);
    if (several.empty()) {
      const auto code_point = static_cast<utf8proc_int32_t>(c);
      return append_utf8(bytes, static_cast<char32_t>(utf8proc_toupper(code_point)));
    }
    for (const char32_t capital : several) append_utf8(bytes, capital);
  }

  // What begins a word. Of several capitals the first letter stays one.
  static void append_title(char32_t c, std::string& bytes) {
    const auto titled = static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
    const std::u32string_view several = several_capitals(c);
    const bool has_own = titled != c && titled != kCapitalSharpS;
    if (has_own || case_of(c) == LetterCase::kTitle || several.empty()) {
      return append_utf8(bytes, titled);
    }
    bool is_behind_letter = false;
    for (const char32_t capital : several) {
      const auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(capital));
      const char32_t rest = capital == kCapitalIota ? kIotaBelow : static_cast<char32_t>(lower);
      append_utf8(bytes, is_behind_letter ? rest : capital);
      is_behind_letter = is_behind_letter || case_of(capital) == LetterCase::kUpper;
    }
  }

  void append_lower(char32_t c, size_t end, std::string& bytes) const {
    if (c == kCapitalSigma && is_behind_cased_ && !is_before_cased(end)) {
      return append_utf8(bytes, kFinalSigma);
    }
    append_utf8(bytes, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    if (c == kDottedCapitalI) append_utf8(bytes, 0x307);
  }

  bool is_before_cased(size_t at) const {
    while (at < text_.size()) {
      const Character character = character_at(text_, at);
      if (!is_case_ignorable(character.code_point)) return is_cased(character.code_point);
      at += character.num_bytes;
    }
    return false;
  }

  std::string_view text_;
  LetterCase letter_case_;
  bool is_within_word_ = false;   // the character before has a case
  bool is_behind_cased_ = false;  // as far as ignorable characters do not stand between
};

}  // namespace

Text with_case(const Text& text, LetterCase letter_case, Runtime& runtime) {
  constexpr size_t kMaxGrowth = 3;
  runtime.count_text(text.size() * (is_ascii(text.bytes()) ? 1 : kMaxGrowth));
  Text result;
  if (text.is_markup()) result.set_markup();
  CaseWriter writer(text.bytes(), letter_case);
  for (size_t i = 0; i < text.size();) {
    const Character character = character_at(text.bytes(), i);
    result.append(writer.next(i, character), text.origin_at(i));
    i += character.num_bytes;
  }
  return result;
}

bool has_only_case(std::string_view text, LetterCase letter_case, Runtime& runtime) {
  runtime.count_text(text.size());
  bool has_letter = false;
  for (size_t i = 0; i < text.size();) {
    const Character character = character_at(text, i);
    i += character.num_bytes;
    if (character.code_point >= 0x80 && character.num_bytes == 1) continue;  // no character
    const std::optional<LetterCase> own = case_of(character.code_point);
    if (own && own != letter_case) return false;
    has_letter = has_letter || own;
  }
  return has_letter;
}

}  // namespace tessera::jinja
