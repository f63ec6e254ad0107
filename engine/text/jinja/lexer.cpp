#include "engine/text/jinja/lexer.h"

#include <algorithm>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/string_literal.h"

namespace tessera::jinja {
namespace {

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// One line feed for every kind of line end, and none at the end of the template.
std::string with_plain_newlines(std::string_view source) {
  std::string plain;
  for (size_t i = 0; i < source.size(); ++i) {
    const bool is_pair = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (!is_pair) plain += source[i] == '\r' ? '\n' : source[i];
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_newlines(source)) {}

  std::vector<Token> tokenize() {
    while (at_ < source_.size()) read_text_and_tag();
    add(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool next_is(std::string_view symbol) const { return rest().starts_with(symbol); }

  // Lines are counted as the lexer goes on.
  SourcePosition position() {
    for (; counted_ < at_; ++counted_) {
      if (source_[counted_] == '\n') {
        ++line_;
        line_begin_ = counted_ + 1;
      }
    }
    return {line_, static_cast<uint32_t>(at_ - line_begin_ + 1)};
  }

  void add(Token::Kind kind, std::string content) {
    tokens_.push_back({kind, std::move(content), position()});
  }

  [[noreturn]] void fail(const std::string& message) { throw error_at(position(), message); }

  void read_text_and_tag() {
    size_t end = at_;
    do {
      end = source_.find('{', end);
      if (end == std::string::npos) end = source_.size();
    } while (end < source_.size() && !begins_tag(end) && ++end);
    std::string text = source_.substr(at_, end - at_);
    if (end < source_.size()) strip_before_tag(text, end);
    if (!text.empty()) add(Token::Kind::kText, std::move(text));
    at_ = end;
    if (at_ < source_.size()) read_tag();
  }

  bool begins_tag(size_t offset) const {
    const char next = offset + 1 < source_.size() ? source_[offset + 1] : ' ';
    return next == '{' || next == '%' || next == '#';
  }

  // Drops the end of `text` as the tag at `tag` wants it.
  void strip_before_tag(std::string& text, size_t tag) const {
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    if (sign == '-') {
      text.erase(trailing_space_begin(text));
    } else if (sign != '+' && source_[tag + 1] != '{') {
      const size_t line = text.rfind('\n') + 1;
      const bool begins_line = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
      if (begins_line && trailing_space_begin(text) <= line) text.erase(line);
    }
  }

  void read_tag() {
    const char kind = source_[at_ + 1];
    if (kind == '#') return read_comment();
    if (kind == '%' && skip_raw_begin()) return read_raw();
    add(kind == '{' ? Token::Kind::kOutputBegin : Token::Kind::kTagBegin, "");
    const SourcePosition begin = position();
    at_ += 2;
    if (next_is("-") || (kind == '%' && next_is("+"))) ++at_;
    while (!read_tag_end(kind == '{')) {
      if (at_ == source_.size()) throw error_at(begin, "this tag has no end");
      read_tag_token();
    }
  }

  void skip_blanks() { at_ += leading_space(rest()); }

  // Passes the end of a tag, with the white space that belongs to it: -} takes all, +} none, and
  // the plain one a newline unless it ends an output.
  bool skip_tag_end(std::string_view end, bool is_output) {
    const bool has_sign = next_is("-") || (!is_output && next_is("+"));
    if (!rest().substr(has_sign ? 1 : 0).starts_with(end)) return false;
    const char sign = has_sign ? source_[at_] : ' ';
    at_ += end.size() + (has_sign ? 1 : 0);
    if (sign == '-') skip_blanks();
    if (sign == ' ' && !is_output && next_is("\n")) ++at_;
    return true;
  }

  bool read_tag_end(bool is_output) {
    skip_blanks();
    if (!open_.empty() || at_ == source_.size()) return false;
    const SourcePosition begin = position();
    if (!skip_tag_end(is_output ? "}}" : "%}", is_output)) return false;
    tokens_.push_back({is_output ? Token::Kind::kOutputEnd : Token::Kind::kTagEnd, "", begin});
    return true;
  }

  void read_comment() {
    const SourcePosition begin = position();
    at_ += 2;
    if (next_is("-") || next_is("+")) ++at_;  // which is no sign of the end: {#-#}
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) throw error_at(begin, "this comment has no end");
    const bool has_sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    at_ = end - (has_sign ? 1 : 0);
    skip_tag_end("#}", false);
  }

  // Passes "{% name %}" in any spelling of white space. Without `trims` the end takes no newline.
  bool skip_plain_tag(std::string_view name, bool trims) {
    const size_t begin = at_;
    at_ += 2;
    if (next_is("-") || next_is("+")) ++at_;
    skip_blanks();
    if (next_is(name)) {
      at_ += name.size();
      skip_blanks();
      const bool is_plain = next_is("%}");
      if (skip_tag_end("%}", false)) {
        if (is_plain && !trims && source_[at_ - 1] == '\n') --at_;
        return true;
      }
    }
    at_ = begin;
    return false;
  }

  bool skip_raw_begin() { return skip_plain_tag("raw", /*trims=*/false); }

  void read_raw() {
    const SourcePosition begin = position();
    const size_t text_begin = at_;
    for (size_t end = source_.find("{%", at_); end != std::string::npos;
         end = source_.find("{%", end + 2)) {
      at_ = end;
      if (!skip_plain_tag("endraw", /*trims=*/true)) continue;
      std::string text = source_.substr(text_begin, end - text_begin);
      const size_t behind = std::exchange(at_, text_begin);
      strip_before_tag(text, end);
      if (!text.empty()) add(Token::Kind::kText, std::move(text));
      at_ = behind;
      return;
    }
    throw error_at(begin, "{% raw %} has no {% endraw %}");
  }

  void read_tag_token() {
    const char c = source_[at_];
    if (begins_name(c)) return read_name();
    if (is_ascii_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    read_operator();
  }

  void read_name() {
    size_t end = at_;
    while (end < source_.size() && (begins_name(source_[end]) || is_ascii_digit(source_[end])))
      ++end;
    add(Token::Kind::kName, source_.substr(at_, end - at_));
    at_ = end;
  }

  size_t digits_end(size_t offset) const {
    while (offset < source_.size() && (is_ascii_digit(source_[offset]) || source_[offset] == '_')) {
      ++offset;
    }
    return offset;
  }

  bool digit_at(size_t offset) const {
    return offset < source_.size() && is_ascii_digit(source_[offset]);
  }

  void read_number() {
    size_t end = digits_end(at_);
    const size_t integer_end = end;
    const bool is_index = source_[at_ - 1] == '.';  // as twice in x.0.1
    if (!is_index && end < source_.size() && source_[end] == '.' && digit_at(end + 1))
      end = digits_end(end + 1);
    if (!is_index && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const bool has_sign =
          end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
      const size_t exponent = end + (has_sign ? 2 : 1);
      if (digit_at(exponent)) end = digits_end(exponent);
    }
    std::string number = source_.substr(at_, end - at_);
    std::erase(number, '_');
    add(end == integer_end ? Token::Kind::kInteger : Token::Kind::kFloat, std::move(number));
    at_ = end;
  }

  void read_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("this string has no end");
    const auto literal = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
    add(Token::Kind::kString, unescape_string(literal, position()));
    at_ = end + 1;
  }

  void read_operator() {
    constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "*",
                                               "/",  "%",  "~",  "=",  "<",  ">",  ".", ":", "|",
                                               ",",  "(",  ")",  "[",  "]",  "{",  "}"};
    const auto found = std::ranges::find_if(
        kOperators, [this](std::string_view symbol) { return next_is(symbol); });
    if (found == std::end(kOperators)) fail("unexpected character");
    balance(found->front());
    add(Token::Kind::kOperator, std::string(*found));
    at_ += found->size();
  }

  // While a bracket is open, }} and %} do not end a tag.
  void balance(char symbol) {
    constexpr std::string_view kOpening = "([{";
    constexpr std::string_view kClosing = ")]}";
    if (kOpening.find(symbol) != std::string_view::npos) open_ += symbol;
    const size_t closing = kClosing.find(symbol);
    if (closing == std::string_view::npos) return;
    if (open_.empty() || open_.back() != kOpening[closing]) fail("this bracket was not opened");
    open_.pop_back();
  }

  std::string source_;
  size_t at_ = 0;
  std::string open_;  // brackets
  std::vector<Token> tokens_;
  size_t counted_ = 0;  // bytes before it are in line_ and line_begin_
  uint32_t line_ = 1;
  size_t line_begin_ = 0;
};

}  // namespace

std::vector<Token> tokenize_template(std::string_view source) { return Lexer(source).tokenize(); }

}  // namespace tessera::jinja
