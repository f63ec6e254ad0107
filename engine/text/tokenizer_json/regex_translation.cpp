#include "engine/text/tokenizer_json/regex_translation.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"
#include "model_loaders/utf8_character.h"

namespace tessera {
namespace {

// Unicode's White_Space, as members of a class.
constexpr std::string_view kWhiteSpaceClass =
    R"(\t-\r\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// Letters that Oniguruma takes for one where case does not matter: "ss" matches "ß" too.
bool is_ligature(char first, char second) {
  const auto lower = [](char letter) { return static_cast<char>(letter | 0x20); };
  constexpr std::string_view kLigatures = " ss ff fi fl st ";
  return kLigatures.find(concat(' ', lower(first), lower(second), ' ')) != std::string_view::npos;
}

bool is_ascii_letter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

bool is_letter_or_mark(std::string_view character) {
  const char32_t code_point = first_utf8_character(character).code_point;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME;
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where)
      : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\') {
        escape();
      } else if (is_in_class_) {
        class_member();
      } else {
        outside_class();
      }
    }
    return std::move(result_);
  }

 private:
  bool continues_with(std::string_view text) const {
    return pattern_.substr(at_).starts_with(text);
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(concat(where_, ": the regular expression has ", printable(what), " at byte ", at_,
                       ", which is not supported"));
  }

  void copy(size_t bytes) {
    result_ += pattern_.substr(at_, bytes);
    at_ += std::min(bytes, pattern_.size() - at_);
  }

  void escape() {
    if (at_ + 1 == pattern_.size()) refuse("a backslash at its end");
    const char kind = pattern_[at_ + 1];
    if (kind == 's' || kind == 'S') return white_space(kind == 'S');
    if (kind == 'p' || kind == 'P') return property();
    const bool may_have_case = kind == 'x' || !is_ascii(kind) || (kind == 'D' && is_in_class_);
    if (ignores_case_ && may_have_case) refuse("such an escape where case does not matter");
    if (kind == 'x') return code_point();
    constexpr std::string_view kSame = "rntfdD";  // but for \v, which PCRE2 takes for several
    const bool has_meaning = is_ascii_letter(kind) || (kind >= '0' && kind <= '9');
    if (has_meaning && kSame.find(kind) == std::string_view::npos) refuse(pattern_.substr(at_, 2));
    item(1 + utf8_character_bytes(kind));
  }

  void code_point() {
    if (!continues_with("\\x{")) refuse("\\x without braces");
    item(std::min(pattern_.find('}', at_), pattern_.size() - 1) + 1 - at_);
  }

  // Copies what a quantifier may follow, or a member of a class.
  void item(size_t bytes) {
    if (!is_in_class_) item_begin_ = result_.size();
    last_letter_ = '\0';
    copy(bytes);
  }

  void white_space(bool is_negated) {
    if (!is_in_class_) {
      item(0);
      result_ += concat(is_negated ? "[^" : "[", kWhiteSpaceClass, "]");
    } else if (is_negated) {
      refuse("\\S in a class");
    } else {
      result_ += kWhiteSpaceClass;
    }
    at_ += 2;
  }

  // General categories alone: PCRE2's scripts include characters that several scripts share.
  void property() {
    const size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos || pattern_[at_ + 2] != '{') refuse("\\p without braces");
    std::string_view name = pattern_.substr(at_ + 3, end - at_ - 3);
    if (name.starts_with('^')) name.remove_prefix(1);
    constexpr std::string_view kCategories =
        " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp ";
    if (kCategories.find(concat(' ', name, ' ')) == std::string_view::npos) {
      refuse(pattern_.substr(at_, end + 1 - at_));
    }
    // Such a class has U+0345 for a letter, or "ss" for a member.
    const bool has_case = is_in_class_ ? name[0] == 'L' || name[0] == 'M'
                                       : name == "Lu" || name == "Ll" || name == "Lt";
    if (ignores_case_ && has_case) {
      refuse(concat(pattern_.substr(at_, end + 1 - at_), " where case does not matter"));
    }
    item(end + 1 - at_);
  }

  // Where case does not matter, Oniguruma takes some letters for several.
  void check_character(std::string_view character) {
    if (!ignores_case_) return;
    if (is_ascii(character[0])) {
      if (!is_ligature(last_letter_, character[0])) return;
      refuse(concat(last_letter_, character, " where case does not matter"));
    }
    const bool ends_range = is_in_class_ && pattern_[at_ - 1] == '-';
    if (ends_range || is_letter_or_mark(character)) {
      refuse(concat(character, " where case does not matter"));
    }
  }

  std::string_view next_character() const {
    return pattern_.substr(at_, utf8_character_bytes(pattern_[at_]));
  }

  void class_member() {
    if (continues_with("&&")) refuse("&&");
    if (pattern_[at_] == '[') refuse("[ in a class");
    check_character(next_character());
    is_in_class_ = pattern_[at_] != ']';
    copy(next_character().size());
  }

  void outside_class() {
    switch (pattern_[at_]) {
      case '[':
        item(continues_with("[^") ? 2 : 1);
        is_in_class_ = true;
        if (continues_with("]")) refuse("] at the beginning of a class");
        return;
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '^':
      case '$':
        refuse(pattern_.substr(at_, 1));
      case '{':
        return interval();
      case '|':
      case '*':
      case '+':
      case '?':
        last_letter_ = '\0';
        return copy(1);
      default:
        return character();
    }
  }

  void character() {
    const std::string_view character = next_character();
    check_character(character);
    item(character.size());
    if (is_ascii_letter(character[0])) last_letter_ = character[0];
  }

  // "{2}", "{2,}" or "{2,3}"; a brace that begins nothing like these stands for itself.
  void interval() {
    if (continues_with("{,")) refuse("{,");
    const size_t comma = pattern_.find_first_not_of("0123456789", at_ + 1);
    const bool has_comma = comma != std::string_view::npos && pattern_[comma] == ',';
    const size_t end = has_comma ? pattern_.find_first_not_of("0123456789", comma + 1) : comma;
    if (comma == at_ + 1 || end == std::string_view::npos || pattern_[end] != '}') {
      item(0);
      result_ += '\\';
      return copy(1);
    }
    last_letter_ = '\0';
    // To PCRE2 a + says that an interval gives nothing back, and a ? that it takes little. To
    // Oniguruma they are quantifiers of their own: but for the ? of an interval with a comma.
    const char next = end + 1 < pattern_.size() ? pattern_[end + 1] : '\0';
    const bool is_quantified = next == '+' || (next == '?' && !has_comma);
    if (is_quantified) result_.insert(item_begin_, "(?:");
    copy(end + 1 - at_);
    if (is_quantified) result_ += ')';
  }

  void open_group() {
    Group group = {.begin = result_.size(), .ignores_case = ignores_case_};
    if (!continues_with("(?")) {
      groups_.push_back(group);
      return copy(1);
    }
    // To Oniguruma all that follows (?i), with the alternatives, is a group.
    if (continues_with("(?i)") && at_ > 0) refuse("(?i) behind its beginning");
    for (const std::string_view kind :
         {"(?:", "(?i:", "(?i)", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (!continues_with(kind)) continue;
      if (!kind.ends_with(')')) groups_.push_back(group);
      if (kind.starts_with("(?i")) ignores_case_ = true;
      return copy(kind.size());
    }
    refuse(pattern_.substr(at_, 3));
  }

  void close_group() {
    if (!groups_.empty()) {
      item_begin_ = groups_.back().begin;
      ignores_case_ = groups_.back().ignores_case;
      groups_.pop_back();
    }
    copy(1);
  }

  struct Group {
    size_t begin = 0;           // in result_
    bool ignores_case = false;  // what is behind it
  };

  std::string_view pattern_;
  const std::string& where_;
  size_t at_ = 0;
  bool is_in_class_ = false;
  bool ignores_case_ = false;
  std::vector<Group> groups_;  // that are open
  char last_letter_ = '\0';    // of ASCII, right before this place
  size_t item_begin_ = 0;      // in result_: of what a quantifier would follow
  std::string result_;
};

}  // namespace

std::string translate_regex(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace tessera
