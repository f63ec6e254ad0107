// "%-5s and %02d" % values
#include <algorithm>
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
    const auto number = argument.number();
    if (!number) throw runtime_.error(concat("%: needs a number, got ", argument.kind()));
    const bool is_integer =
        std::string_view("dixX").find(conversion.kind) != std::string_view::npos;
    const bool is_float = std::string_view("feEgG").find(conversion.kind) != std::string_view::npos;
    if (!is_integer && !is_float) {
      throw runtime_.error(concat("%: unsupported conversion '", conversion.kind, "'"));
    }
    std::string format = "%" + conversion.flags + std::to_string(conversion.width);
    if (conversion.precision) format += "." + std::to_string(*conversion.precision);
    format += is_integer ? std::string("ll") + conversion.kind : std::string(1, conversion.kind);
    char buffer[2 * kMaxFormatWidth + 400];
    if (is_float) {
      std::snprintf(buffer, sizeof(buffer), format.c_str(), *number);
    } else {
      const bool fits = *number > -9.2e18 && *number < 9.2e18;
      if (!argument.integer_value() && !fits) throw runtime_.error("%: integer overflow");
      const long long integer =
          argument.integer_value() ? *argument.integer_value() : static_cast<long long>(*number);
      std::snprintf(buffer, sizeof(buffer), format.c_str(), integer);
    }
    return buffer;
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
