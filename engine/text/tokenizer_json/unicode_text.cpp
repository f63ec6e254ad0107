#include "engine/text/tokenizer_json/unicode_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "engine/text/tokenizer_json/young_characters.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/utf8_character.h"

namespace tessera {
namespace {

// Changing more than one word at a time costs less.
constexpr size_t kChangedBytes = 256;
constexpr size_t kCharactersBetweenPauses = 1 << 14;

// Characters that no form changes, and that compose with none before them: ASCII and those from
// U+4000 to U+9FFF; for NFC also those up to U+02FF. `lead` begins a character or is within one.
bool begins_anew(char lead, NormalForm form) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 || (byte >= 0xE4 && byte <= 0xE9) ||
         (form == NormalForm::kNfc && byte >= 0xC2 && byte < 0xCC);
}

// The same is true of U+2002 to U+203F for NFC, the quotes and dashes of printed English.
bool is_general_punctuation(std::string_view text, NormalForm form) {
  return form == NormalForm::kNfc && text.starts_with("\xE2\x80") &&
         static_cast<unsigned char>(text[2]) >= 0x82;
}

// How much of the beginning is in the form, as a look at single characters can tell.
size_t unchanged_prefix(std::string_view text, NormalForm form) {
  size_t end = ascii_prefix(text);
  while (end < text.size() &&
         (begins_anew(text[end], form) || is_general_punctuation(text.substr(end), form))) {
    end += utf8_character_bytes(text[end]);
    end += ascii_prefix(text.substr(end));
  }
  return end;
}

void append_utf8(utf8proc_int32_t code_point, std::string& text) {
  std::array<utf8proc_uint8_t, 4> bytes = {};
  const utf8proc_ssize_t count = utf8proc_encode_char(code_point, bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(count));
}

utf8proc_option_t options_of(NormalForm form) {
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool is_compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                        (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (is_compatible ? UTF8PROC_COMPAT : 0));
}

void append_decomposed(char32_t code_point, utf8proc_option_t options,
                       std::vector<utf8proc_int32_t>& points) {
  constexpr size_t kLongest = 18;  // U+FDFA
  std::array<utf8proc_int32_t, kLongest> parts = {};
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code_point), parts.data(), std::ssize(parts), options, nullptr);
  CHECK(count >= 0 && count <= std::ssize(parts),
        "a normal form of Unicode fails: ", utf8proc_errmsg(count));
  points.insert(points.end(), parts.begin(), parts.begin() + count);
}

// Puts marks behind one another in the order of their classes. The library's own way to do so takes
// a time that grows with the square of their number.
void sort_marks(std::vector<utf8proc_int32_t>& points) {
  const auto mark_class = [](utf8proc_int32_t point) {
    return utf8proc_get_property(point)->combining_class;
  };
  const auto is_mark = [&](utf8proc_int32_t point) { return mark_class(point) != 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if_not(begin, points.end(), is_mark);
    if (end - begin > 1) std::ranges::stable_sort(begin, end, {}, mark_class);
    begin = std::find_if(end, points.end(), is_mark);
  }
}

// Adds the form of characters that are taken apart already.
void append_formed(std::vector<utf8proc_int32_t>& points, utf8proc_option_t options,
                   std::string& result) {
  sort_marks(points);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(points.data(), std::ssize(points), options);
  CHECK(count >= 0, "a normal form of Unicode fails: ", utf8proc_errmsg(count));
  for (const utf8proc_int32_t point : std::span(points).first(static_cast<size_t>(count))) {
    append_utf8(point, result);
  }
}

// Whether the library leaves the character alone, and does not look past it either: one that its
// tables do not take apart, or a mark of which they do not know in what order it stands.
bool is_young(char32_t code_point, NormalForm form) {
  if (code_point < kFirstYoung) return false;
  if (form != NormalForm::kNfc && is_among(kYoungLetters, code_point)) return true;
  const auto* const property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point));
  return property->combining_class != 0 && is_among(kYoungMarks, code_point);
}

void append_normal_form(std::string_view text, NormalForm form, std::string& result) {
  const utf8proc_option_t options = options_of(form);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    if (is_young(character.code_point, form)) {
      append_formed(points, options, result);
      points.clear();
      result += text.substr(0, character.num_bytes);
    } else {
      append_decomposed(character.code_point, options, points);
    }
    text.remove_prefix(character.num_bytes);
  }
  append_formed(points, options, result);
}

// Where `text` may be cut at `at` or later: before a character that composes with none before it.
size_t next_cut(std::string_view text, size_t at, NormalForm form) {
  while (at < text.size() && !begins_anew(text[at], form)) ++at;
  return std::min(at, text.size());
}

// Calls change(code point, its bytes, result) for each character that is not ASCII.
template <typename Change>
std::string change_characters(std::string_view text, const Pause& pause, const Change& change) {
  std::string result;
  result.reserve(text.size());
  for (size_t count = 1; !text.empty(); ++count) {
    if (count % kCharactersBetweenPauses == 0) pause();
    const size_t ascii = ascii_prefix(text);
    result += text.substr(0, ascii);
    text.remove_prefix(ascii);
    if (text.empty()) break;
    const Utf8Character character = first_utf8_character(text);
    change(character.code_point, text.substr(0, character.num_bytes), result);
    text.remove_prefix(character.num_bytes);
  }
  return result;
}

// White_Space of Unicode.
bool is_white_space(uint32_t code_point) {
  constexpr std::array<CodePoints, 10> kWhiteSpace = {{{0x09, 0x0D},
                                                       {0x20, 0x20},
                                                       {0x85, 0x85},
                                                       {0xA0, 0xA0},
                                                       {0x1680, 0x1680},
                                                       {0x2000, 0x200A},
                                                       {0x2028, 0x2029},
                                                       {0x202F, 0x202F},
                                                       {0x205F, 0x205F},
                                                       {0x3000, 0x3000}}};
  return is_among(kWhiteSpace, code_point);
}

}  // namespace

std::optional<std::string> to_normal_form(std::string_view text, NormalForm form,
                                          const Pause& pause) {
  size_t unchanged = unchanged_prefix(text, form);
  if (unchanged == text.size()) return std::nullopt;
  std::string result;
  result.reserve(text.size());
  for (; unchanged < text.size(); unchanged = unchanged_prefix(text, form)) {
    pause();
    // What comes next may compose with the last of these characters.
    size_t kept = unchanged;
    while (kept > 0 && is_utf8_continuation(text[--kept])) {
    }
    const size_t end = next_cut(text, unchanged + kChangedBytes, form);
    result += text.substr(0, kept);
    append_normal_form(text.substr(kept, end - kept), form, result);
    text.remove_prefix(end);
  }
  return result += text;
}

// Hangul syllables: three letters of three bytes become one character of three. U+1FEF, of three
// bytes, is a letter of ASCII, and so are letters of four bytes to those who look for what is
// compatible.
int64_t max_shrinking(NormalForm form) {
  constexpr int64_t kComposing = 3;
  constexpr int64_t kDecomposing = 3;
  constexpr int64_t kCompatible = 4;
  switch (form) {
    case NormalForm::kNfc:
      return kComposing;
    case NormalForm::kNfd:
      return kDecomposing;
    case NormalForm::kNfkc:
      return kComposing * kCompatible;
    case NormalForm::kNfkd:
      return kCompatible;
  }
  return 1;
}

std::string to_lower_case(std::string_view text, const Pause& pause) {
  constexpr uint32_t kCapitalIWithDot = 0x130;  // the only one that becomes two characters
  std::string result =
      change_characters(text, pause, [](uint32_t code_point, std::string_view, std::string& lower) {
        if (code_point == kCapitalIWithDot) {
          lower += "i\u0307";
          return;
        }
        append_utf8(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point)), lower);
      });
  for (char& byte : result) {
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  }
  return result;
}

std::string without_marks(std::string_view text, const Pause& pause) {
  return change_characters(
      text, pause, [](uint32_t code_point, std::string_view bytes, std::string& result) {
        const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
        const bool is_mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                             category == UTF8PROC_CATEGORY_ME;
        if (is_mark == is_among(kYoungMarks, code_point)) result += bytes;
      });
}

std::string_view stripped(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    const Utf8Character first = first_utf8_character(text);
    if (!is_white_space(first.code_point)) break;
    text.remove_prefix(first.num_bytes);
  }
  while (right && !text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && is_utf8_continuation(text[begin])) --begin;
    if (!is_white_space(first_utf8_character(text.substr(begin)).code_point)) break;
    text = text.substr(0, begin);
  }
  return text;
}

}  // namespace tessera
