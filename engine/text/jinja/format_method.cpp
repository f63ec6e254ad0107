// "{:<5} and {name}".format(...)
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/printing.h"

namespace tessera::jinja {
namespace {

constexpr size_t kMaxFieldWidth = 1000;

// [[fill]align][sign][0][width][grouping][.precision][type]
struct FieldSpec {
  Text fill = Text(" ", Origin::kTemplate);
  char align = 0;
  bool is_zero_filled = false;  // 0 in front of the width
  char sign = 0;
  size_t width = 0;
  char grouping = 0;
  std::optional<size_t> precision;
  char type = 0;
};

bool is_one_of(char c, std::string_view characters) {
  return characters.find(c) != std::string_view::npos;
}

// What is left of a part of the format.
class PartReader {
 public:
  PartReader(const Text& part, const Call& call) : part_(part), call_(call) {}

  bool at_end() const { return at_ == part_.size(); }
  char next() const { return at_end() ? '\0' : part_.bytes()[at_]; }
  char take() { return part_.bytes()[at_++]; }
  char take_one_of(std::string_view characters) {
    return !at_end() && is_one_of(next(), characters) ? take() : '\0';
  }
  std::optional<size_t> take_number() {
    if (!is_one_of(next(), "123456789") && next() != '0') return std::nullopt;
    size_t number = 0;
    while (const char digit = take_one_of("0123456789")) {
      number = number * 10 + static_cast<size_t>(digit - '0');
      if (number > kMaxFieldWidth) throw call_.error("a number of the format is too large");
    }
    return number;
  }
  std::string take_until(std::string_view ends) {
    const size_t end = std::min(part_.bytes().find_first_of(ends, at_), part_.size());
    std::string taken = part_.bytes().substr(at_, end - at_);
    at_ = end;
    return taken;
  }

  FieldSpec take_spec() {
    constexpr std::string_view kAligns = "<>^=";
    FieldSpec spec;
    const size_t fill_bytes = at_end() ? 0 : character_at(part_.bytes(), at_).num_bytes;
    const size_t behind = at_ + fill_bytes;
    const bool has_fill = behind < part_.size() && is_one_of(part_.bytes()[behind], kAligns);
    if (has_fill) {
      spec.fill = part_.slice(at_, behind);
      at_ = behind;
    }
    spec.align = take_one_of(kAligns);
    spec.sign = take_one_of("+- ");
    if (next() == '0' && !has_fill) {
      spec.fill = part_.slice(at_, at_ + 1);
      spec.is_zero_filled = true;
    }
    spec.width = take_number().value_or(0);
    spec.grouping = take_one_of(",_");
    if (take_one_of(".")) {
      spec.precision = take_number();
      if (!spec.precision) throw call_.error("the format lacks its precision");
    }
    spec.type = take_one_of("sdxXobeEfFgG%");
    if (!at_end()) throw call_.error(concat("the format '", part_.bytes(), "' is not supported"));
    return spec;
  }

 private:
  const Text& part_;
  const Call& call_;
  size_t at_ = 0;
};

// From the right, "," or "_" between groups of digits.
std::string grouped(const std::string& digits, char grouping, size_t group) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % group == 0) text += grouping;
    text += digits[i];
  }
  return text;
}

class FieldFormatter {
 public:
  explicit FieldFormatter(Call& call) : call_(call), format_(call.text()) {}

  Text format() {
    const std::string& bytes = format_.bytes();
    for (size_t at = 0; at < bytes.size();) {
      const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
      text_.append(format_, at, brace);
      at = brace + 1;
      if (brace == bytes.size()) break;
      if (at < bytes.size() && bytes[at] == bytes[brace]) {
        text_.append(format_, at, at + 1);
        ++at;
        continue;
      }
      const size_t end = bytes.find_first_of("{}", at);
      if (bytes[brace] == '}' || end == std::string::npos) {
        throw call_.error(concat("a single '", bytes[brace], "' in the format"));
      }
      if (bytes[end] == '{') throw call_.error("a field within a field is not supported");
      append_field(format_.slice(at, end));
      at = end + 1;
    }
    return std::move(text_);
  }

 private:
  void append_field(const Text& field) {
    const size_t name_end = std::min(field.bytes().find_first_of("!:"), field.size());
    const Value value = value_of(field.slice(0, name_end));
    size_t spec_begin = name_end;
    if (spec_begin < field.size() && field.bytes()[spec_begin] == '!') {
      throw call_.error("a conversion of the format, as !r, is not supported");
    }
    spec_begin = std::min(spec_begin + 1, field.size());
    const Text spec_text = field.slice(spec_begin, field.size());
    if (spec_text.empty()) {
      const Text shown = printed(value, call_.runtime);
      call_.runtime.count_text(shown.size());
      return text_.append(shown);
    }
    const FieldSpec spec = PartReader(spec_text, call_).take_spec();
    if (value.as_text() != nullptr) return append_text(*value.as_text(), spec);
    append_number(value, spec);
  }

  // A place, a name or nothing, and what leads on from there: .name and [index].
  Value value_of(const Text& field) {
    PartReader reader(field, call_);
    Value value = argument(reader.take_until(".["));
    while (!reader.at_end()) {
      if (const Undefined* const undefined = value.as_undefined()) {
        throw call_.error(concat("'", *undefined->name, "' is undefined"));
      }
      const bool is_attribute = reader.take() == '.';
      const std::string key = reader.take_until(is_attribute ? ".[" : "]");
      if (key.empty()) throw call_.error("an empty attribute in the format");
      if (!is_attribute && !reader.take_one_of("]")) throw call_.error("']' is missing");
      const bool is_index = !is_attribute && key.find_first_not_of("0123456789") == key.npos;
      if (is_index && key.size() > 9) throw call_.error("an index of the format is too large");
      const Value index = is_index ? Value(int64_t{std::stoi(key)}) : Value::data(key);
      const auto item = item_of(value, index, call_.runtime);
      value = item ? *item : Value::undefined(key);
    }
    return value;
  }

  const Value& argument(const std::string& name) {
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      for (const auto& [key, value] : call_.named) {
        if (key == name) return value;
      }
      throw call_.error(concat("has no argument '", name, "'"));
    }
    if (counts_ && *counts_ != name.empty()) {
      throw call_.error("some fields of the format have a number and others have none");
    }
    counts_ = name.empty();
    if (name.size() > 9) throw call_.error("the number of a field is too large");
    const size_t place = name.empty() ? next_++ : static_cast<size_t>(std::stoi(name));
    if (place + 1 >= call_.arguments.size()) throw call_.error(concat("has no argument ", place));
    return call_.arguments[place + 1];
  }

  void append_text(const Text& text, const FieldSpec& spec) {
    const bool is_plain = spec.sign == 0 && spec.grouping == 0 && spec.align != '=';
    if (!is_plain || (spec.type != 0 && spec.type != 's')) {
      throw call_.error("a string has the format of a number");
    }
    size_t end = 0;
    for (size_t i = 0; i < spec.precision.value_or(0) && end < text.size(); ++i) {
      end += character_at(text.bytes(), end).num_bytes;
    }
    append_padded("", spec.precision ? text.slice(0, end) : text, spec, '<');
  }

  void append_number(const Value& value, const FieldSpec& spec) {
    const auto integer = value.integer_value();
    const auto number = value.number();
    const bool is_float = is_one_of(spec.type, "eEfFgG%") || !integer;
    if (!number || spec.type == 's' || (!integer && is_one_of(spec.type, "dxXob"))) {
      throw call_.error(concat("the format of ", value.kind(), " is not one for it"));
    }
    const char default_align = spec.is_zero_filled ? '=' : '>';
    const char align = spec.align == 0 ? default_align : spec.align;
    if (spec.grouping != 0 && spec.fill.bytes() == "0" && align == '=') {
      throw call_.error("zeros in front of grouped digits are not supported");
    }
    const std::string digits = is_float ? float_digits(*number, spec) : digits_of(*integer, spec);
    const bool is_negative =
        is_float ? std::signbit(*number) && !std::isnan(*number) : *integer < 0;
    const std::string sign = is_negative                          ? "-"
                             : spec.sign == 0 || spec.sign == '-' ? ""
                                                                  : std::string(1, spec.sign);
    append_padded(sign, Text(digits, Origin::kTemplate), spec, default_align);
  }

  std::string digits_of(int64_t integer, const FieldSpec& spec) const {
    const int base = spec.type == 'b'                       ? 2
                     : spec.type == 'o'                     ? 8
                     : spec.type == 'x' || spec.type == 'X' ? 16
                                                            : 10;
    if (spec.precision) throw call_.error("an integer has no precision");
    if (base != 10 && spec.grouping == ',') throw call_.error("',' groups decimal digits only");
    auto magnitude = static_cast<uint64_t>(integer);
    if (integer < 0) magnitude = 0 - magnitude;
    char buffer[64];  // in base 2
    const auto written = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base);
    std::string digits(buffer, written.ptr);
    for (char& digit : digits) {
      if (spec.type == 'X' && digit >= 'a') digit = static_cast<char>(digit - 'a' + 'A');
    }
    return spec.grouping == 0 ? digits : grouped(digits, spec.grouping, base == 10 ? 3 : 4);
  }

  std::string float_digits(double number, const FieldSpec& spec) const {
    const double magnitude = std::abs(number);
    if (spec.type == 0 && spec.precision) {
      throw call_.error("a precision without e, f, g or % is not supported");
    }
    std::string digits = printed_float(magnitude);
    if (spec.type != 0) {
      const bool is_percentage = spec.type == '%';
      const char format[] = {'%', '.', '*', is_percentage ? 'f' : spec.type, '\0'};
      char buffer[kMaxFieldWidth + 400];
      std::snprintf(buffer, sizeof(buffer), format, static_cast<int>(spec.precision.value_or(6)),
                    is_percentage ? magnitude * 100 : magnitude);
      digits = concat(buffer, is_percentage ? "%" : "");
    }
    if (spec.grouping == 0) return digits;
    const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
    return grouped(digits.substr(0, end), spec.grouping, 3) + digits.substr(end);
  }

  void append_padded(const std::string& sign, const Text& text, const FieldSpec& spec,
                     char default_align) {
    const size_t width = sign.size() + count_characters(text.bytes());
    const size_t padding = spec.width - std::min(spec.width, width);
    call_.runtime.count_text(text.size() + padding * spec.fill.size());
    const char align = spec.align == 0 ? default_align : spec.align;
    const size_t before = align == '<' ? 0 : align == '^' ? padding / 2 : padding;
    if (align == '=') text_.append(sign, Origin::kTemplate);
    for (size_t i = 0; i < before; ++i) text_.append(spec.fill);
    if (align != '=') text_.append(sign, Origin::kTemplate);
    text_.append(text);
    for (size_t i = before; i < padding; ++i) text_.append(spec.fill);
  }

  Call& call_;
  const Text& format_;
  std::optional<bool> counts_;  // whether fields take one argument after the other
  size_t next_ = 0;
  Text text_;
};

}  // namespace

Value method_format(Call& call) {
  if (call.text().is_markup()) throw call.error("of a text that is safe is not supported");
  return call.runtime.make(FieldFormatter(call).format());
}

}  // namespace tessera::jinja
