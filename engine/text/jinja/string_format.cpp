// "%-5s and %02d" % values
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/printing.h"

namespace tessera::jinja {
namespace {

constexpr size_t kMaxFormatWidth = 1000;

struct Conversion {
  std::string flags;
  size_t width = 0;
  std::optional<size_t> precision;
  char kind = 0;

  bool has(char flag) const { return flags.find(flag) != std::string::npos; }
};

class Formatter {
 public:
  Formatter(const Text& format, const Value& arguments, Runtime& runtime)
      : format_(format), runtime_(runtime) {
    const List* const list = arguments.as_list();
    may_be_unused_ = arguments.is_undefined() || arguments.as_dict() != nullptr ||
                     (list != nullptr && !list->is_tuple());
    if (list != nullptr && list->is_tuple()) {
      arguments_ = list->elements();
    } else {
      arguments_ = {arguments};
    }
  }

  Text format() {
    const std::string& bytes = format_.bytes();
    while (at_ < bytes.size()) {
      const size_t percent = std::min(bytes.find('%', at_), bytes.size());
      text_.append(format_, at_, percent);
      at_ = percent;
      if (at_ < bytes.size()) format_next();
    }
    if (next_argument_ < arguments_.size() && !may_be_unused_) {
      throw runtime_.error("%: too many values");
    }
    return std::move(text_);
  }

 private:
  char take() {
    if (at_ == format_.size()) throw runtime_.error("%: the format is incomplete");
    return format_.bytes()[at_++];
  }

  size_t take_number(char& next) {
    size_t number = 0;
    for (; next >= '0' && next <= '9'; next = take()) {
      number = number * 10 + static_cast<size_t>(next - '0');
      if (number > kMaxFormatWidth) throw runtime_.error("%: too wide");
    }
    return number;
  }

  Conversion take_conversion() {
    Conversion conversion;
    take();  // %
    char next = take();
    for (; std::string_view("-+ #0").find(next) != std::string_view::npos; next = take()) {
      conversion.flags += next;
    }
    conversion.width = take_number(next);
    if (next == '.') {
      next = take();
      conversion.precision = take_number(next);
    }
    conversion.kind = next;
    return conversion;
  }

  void format_next() {
    const Conversion conversion = take_conversion();
    if (conversion.kind == '%') return text_.append("%", Origin::kTemplate);
    if (next_argument_ == arguments_.size()) throw runtime_.error("%: too few values");
    const Value& argument = arguments_[next_argument_++];
    if (conversion.kind == 's') {
      append_padded(cut(printed(argument, runtime_), conversion), conversion);
    } else {
      append_padded(Text(number_text(argument, conversion), Origin::kTemplate), conversion);
    }
  }

  // The characters that the precision lets in.
  static Text cut(const Text& value, const Conversion& conversion) {
    size_t end = 0;
    for (size_t i = 0; i < conversion.precision.value_or(0) && end < value.size(); ++i) {
      end += character_at(value.bytes(), end).num_bytes;
    }
    return conversion.precision ? value.slice(0, end) : value;
  }

  void append_padded(const Text& value, const Conversion& conversion) {
    runtime_.count_text(value.size() + conversion.width);
    const size_t width = count_characters(value.bytes());
    const std::string padding(conversion.width - std::min(conversion.width, width), ' ');
    if (!conversion.has('-')) text_.append(padding, Origin::kTemplate);
    text_.append(value);
    if (conversion.has('-')) text_.append(padding, Origin::kTemplate);
  }

  std::string number_text(const Value& argument, const Conversion& conversion) const {
    const auto is_one_of = [&](std::string_view kinds) {
      return kinds.find(conversion.kind) != std::string_view::npos;
    };
    const auto number = argument.number();
    if (!number) throw runtime_.error(concat("%: needs a number, got ", argument.kind()));
    if (is_one_of("fFeEgG")) return float_text(*number, conversion);
    if (!is_one_of("dixX")) {
      throw runtime_.error(concat("%: unsupported conversion '", conversion.kind, "'"));
    }
    if (const auto integer = argument.integer_value()) return integer_text(*integer, conversion);
    if (!is_one_of("di")) throw runtime_.error("%: needs an integer, got a float");
    const bool fits = *number > -9.2e18 && *number < 9.2e18;
    if (!fits) throw runtime_.error("%: integer overflow");
    return integer_text(static_cast<int64_t>(*number), conversion);
  }

  static std::string float_text(double number, const Conversion& conversion) {
    std::string format = conversion.has('#') ? "%#" : "%";
    if (conversion.precision) format += "." + std::to_string(*conversion.precision);
    format += conversion.kind;
    char buffer[kMaxFormatWidth + 400];
    std::snprintf(buffer, sizeof(buffer), format.c_str(), std::abs(number));
    return signed_text(std::signbit(number) && !std::isnan(number), "", buffer, conversion);
  }

  static std::string integer_text(int64_t integer, const Conversion& conversion) {
    const auto bits = static_cast<uint64_t>(integer);
    const bool is_decimal = conversion.kind == 'd' || conversion.kind == 'i';
    char buffer[20];
    const auto result = std::to_chars(buffer, std::end(buffer), integer < 0 ? 0 - bits : bits,
                                      is_decimal ? 10 : 16);
    std::string digits(buffer, result.ptr);
    const size_t num_digits = std::max(digits.size(), conversion.precision.value_or(0));
    digits.insert(0, num_digits - digits.size(), '0');
    const std::string_view base = is_decimal || !conversion.has('#') ? "" : "0x";
    std::string text = signed_text(integer < 0, base, digits, conversion);
    if (conversion.kind == 'X') {
      for (char& c : text) c = static_cast<char>(std::toupper(c));
    }
    return text;
  }

  // The sign stands before the base also of hexadecimal digits, and zeros up to the width behind
  // both, also before "inf", unlike in C.
  static std::string signed_text(bool is_negative, std::string_view base, std::string_view digits,
                                 const Conversion& conversion) {
    std::string text = is_negative ? "-" : conversion.has('+') ? "+" : "";
    if (text.empty() && conversion.has(' ')) text = " ";
    text += base;
    const size_t size = text.size() + digits.size();
    const bool is_filled = conversion.has('0') && !conversion.has('-') && conversion.width > size;
    if (is_filled) text.append(conversion.width - size, '0');
    return text.append(digits);
  }

  const Text& format_;
  Runtime& runtime_;
  std::vector<Value> arguments_;
  bool may_be_unused_;  // Python lets what has items be one value, or none
  size_t next_argument_ = 0;
  size_t at_ = 0;
  Text text_;
};

}  // namespace

Value format_text(const Text& format, const Value& arguments, Runtime& runtime) {
  return runtime.make(Formatter(format, arguments, runtime).format());
}

}  // namespace tessera::jinja
