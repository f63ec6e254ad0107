#include "engine/text/tokenizer_json/regex_translation.h"

#include <algorithm>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

// Unicode's White_Space, as members of a class.
constexpr std::string_view kWhiteSpaceClass =
    R"(\t-\r\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

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
    if (kind == 'x' && !continues_with("\\x{")) refuse("\\x without braces");
    const bool is_letter = (kind >= 'a' && kind <= 'z') || (kind >= 'A' && kind <= 'Z') ||
                           (kind >= '0' && kind <= '9');
    constexpr std::string_view kSame = "rntfvdDx";
    if (is_letter && kSame.find(kind) == std::string_view::npos) refuse(pattern_.substr(at_, 2));
    // PCRE2 takes \v for every vertical white space.
    if (kind == 'v') refuse("\\v");
    copy(2);
  }

  void white_space(bool is_negated) {
    if (!is_in_class_) {
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
    copy(end + 1 - at_);
  }

  void class_member() {
    if (continues_with("&&")) refuse("&&");
    if (pattern_[at_] == '[') refuse("[ in a class");
    is_in_class_ = pattern_[at_] != ']';
    copy(1);
  }

  void outside_class() {
    switch (pattern_[at_]) {
      case '[':
        is_in_class_ = true;
        copy(continues_with("[^") ? 2 : 1);
        if (continues_with("]")) refuse("] at the beginning of a class");
        return;
      case '(':
        return group();
      case '^':
      case '$':
        refuse(pattern_.substr(at_, 1));
      case '{':
        if (continues_with("{,")) refuse("{,");
        return copy(1);
      default:
        return copy(1);
    }
  }

  void group() {
    if (!continues_with("(?")) return copy(1);
    for (const std::string_view kind :
         {"(?:", "(?i:", "(?i)", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (continues_with(kind)) return copy(kind.size());
    }
    refuse(pattern_.substr(at_, 3));
  }

  std::string_view pattern_;
  const std::string& where_;
  size_t at_ = 0;
  bool is_in_class_ = false;
  std::string result_;
};

}  // namespace

std::string translate_regex(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace tessera
