// Filters that make text.
#include <charconv>
#include <cmath>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/printing.h"
#include "engine/text/jinja/text_operations.h"

namespace tessera::jinja {
namespace {

// Most filters take what any value prints.
Text soft_text(Call& call) { return printed(call.subject(), call.runtime); }

Value filter_string(Call& call) {
  call.bind({});
  return call.runtime.make(soft_text(call));
}

Value filter_trim(Call& call) {
  const auto bound = call.bind({"chars"});
  const Text* const characters =
      bound[0] == nullptr || bound[0]->is_none() ? nullptr : &call.text(*bound[0]);
  const Text text = soft_text(call);
  if (characters != nullptr) {
    call.runtime.count_steps(text.size() / 64 * (1 + characters->size() / 64));
  }
  return call.runtime.make(stripped(text, characters, Side::kBoth));
}

template <LetterCase kCase>
Value filter_case(Call& call) {
  call.bind({});
  return call.runtime.make(with_case(soft_text(call), kCase, call.runtime));
}

// Words begin behind white space and -, (, {, [, <. The rest of a word does not know how it begins.
Value filter_title(Call& call) {
  call.bind({});
  const Text text = soft_text(call);
  const auto separates = [](char32_t c) {
    return is_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  Text result;
  const auto append = [&](size_t begin, size_t end, LetterCase letter_case) {
    result.append(with_case(text.slice(begin, end), letter_case, call.runtime));
  };
  for (size_t i = 0; i < text.size();) {
    const Character first = character_at(text.bytes(), i);
    size_t end = i + first.num_bytes;
    append(i, end, LetterCase::kUpper);
    const size_t rest = end;
    while (!separates(first.code_point) && end < text.size()) {
      const Character next = character_at(text.bytes(), end);
      if (separates(next.code_point)) break;
      end += next.num_bytes;
    }
    append(rest, end, LetterCase::kLower);
    i = end;
  }
  return call.runtime.make(std::move(result));
}

Value filter_replace(Call& call) {
  const auto bound = call.bind_required({"old", "new", "count"}, 2);
  const int64_t max_count =
      bound[2] == nullptr || bound[2]->is_none() ? -1 : call.integer(*bound[2]);
  return call.runtime.make(replaced(soft_text(call), printed(*bound[0], call.runtime),
                                    printed(*bound[1], call.runtime), max_count, call.runtime));
}

Value filter_format(Call& call) {
  std::vector<Value> arguments(call.arguments.begin() + 1, call.arguments.end());
  if (!call.named.empty()) throw call.error("takes no arguments by name");
  return format_text(call.text(), Value(List(std::move(arguments), List::Form::kTuple)),
                     call.runtime);
}

Text indentation_of(const Value* width, Call& call) {
  if (width == nullptr) return Text("    ", Origin::kTemplate);
  if (width->as_text() != nullptr) return *width->as_text();
  const int64_t count = std::max<int64_t>(call.integer(*width), 0);
  call.runtime.count_text(static_cast<uint64_t>(count));
  return Text(std::string(static_cast<size_t>(count), ' '), Origin::kTemplate);
}

Value filter_indent(Call& call) {
  const auto bound = call.bind({"width", "first", "blank"});
  const Text indentation = indentation_of(bound[0], call);
  const bool indents_first = bound[1] != nullptr && bound[1]->is_true();
  const bool indents_blank = bound[2] != nullptr && bound[2]->is_true();
  Text text = soft_text(call);
  text.append("\n", Origin::kTemplate);
  Text result;
  bool is_first = true;
  for (const Text& line : split_lines(text, call.runtime)) {
    call.runtime.count_text(indentation.size() + line.size());
    if (!is_first) result.append("\n", Origin::kTemplate);
    const bool is_indented = is_first ? indents_first : indents_blank || !line.empty();
    if (is_indented) result.append(indentation);
    result.append(line);
    is_first = false;
  }
  return call.runtime.make(std::move(result));
}

Value filter_tojson(Call& call) {
  const auto bound = call.bind({"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style = {.item_separator = ", ", .key_separator = ": "};
  style.is_ascii = bound[0] != nullptr && bound[0]->is_true();
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    style.indent = indentation_of(bound[1], call);
    style.item_separator = ",";
  }
  if (bound[2] != nullptr && !bound[2]->is_none()) {
    const std::vector<Value> separators = elements_of(*bound[2], call.runtime);
    if (separators.size() != 2) throw call.error("needs two separators");
    style.item_separator = call.text(separators[0]).bytes();
    style.key_separator = call.text(separators[1]).bytes();
  }
  style.sorts_keys = bound[3] != nullptr && bound[3]->is_true();
  return call.runtime.make(printed_json(call.subject(), style, call.runtime));
}

// A number in a text as float() takes it: with white space around it, one sign, and _ between
// digits.
std::optional<double> parsed_number(std::string_view text, const Call& call) {
  text = text.substr(0, trailing_space_begin(text));
  text.remove_prefix(leading_space(text));
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit_at = [&](size_t place) {
      return place < text.size() && text[place] >= '0' && text[place] <= '9';
    };
    const bool joins = text[i] == '_' && i > 0 && is_digit_at(i - 1) && is_digit_at(i + 1);
    if (!joins) plain += text[i];
  }
  double number = 0;
  const char* const end = plain.data() + plain.size();
  const auto result = std::from_chars(plain.data(), end, number);
  if (result.ptr != end || plain.ends_with(')')) {  // nan(1)
    for (const size_t begin : character_offsets(text)) {
      const char32_t c = begin < text.size() ? character_at(text, begin).code_point : 0;
      if (c >= 0x80 && is_digit(c) == true) throw call.error("knows the digits of ASCII only");
    }
    return std::nullopt;
  }
  if (result.ec == std::errc::result_out_of_range) throw call.error("the number is out of range");
  return result.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<double> as_number(const Call& call) {
  const Text* const text = call.subject().as_text();
  return text != nullptr ? parsed_number(text->bytes(), call) : call.subject().number();
}

Value filter_int(Call& call) {
  const auto bound = call.bind({"default", "base"});
  if (bound[1] != nullptr) throw call.error("knows base 10 only");
  if (const auto integer = call.subject().integer_value()) return Value(*integer);
  const auto number = as_number(call);
  if (number && std::abs(*number) < 9e15) return Value(static_cast<int64_t>(*number));
  if (number && std::isfinite(*number)) throw call.error("integer overflow");
  return bound[0] == nullptr ? Value(int64_t{0}) : *bound[0];
}

Value filter_float(Call& call) {
  const auto bound = call.bind({"default"});
  if (const auto number = as_number(call)) return Value(*number);
  return bound[0] == nullptr ? Value(0.0) : *bound[0];
}

// To tens, hundreds, ..., and to an even one of them from the middle between two.
Value rounded_integer(int64_t number, int64_t num_zeros, const Call& call) {
  int64_t unit = 1;
  for (int64_t i = 0; i < num_zeros; ++i) {
    if (unit > INT64_MAX / 10) return Value(int64_t{0});
    unit *= 10;
  }
  int64_t rest = number % unit;
  if (rest < 0) rest += unit;
  int64_t rounded = 0;
  bool overflows = __builtin_sub_overflow(number, rest, &rounded);
  const bool is_even = rounded / unit % 2 == 0;
  if (rest > unit - rest || (rest == unit - rest && !is_even)) {
    overflows = overflows || __builtin_add_overflow(rounded, unit, &rounded);
  }
  if (overflows) throw call.error("integer overflow");
  return Value(rounded);
}

Value filter_round(Call& call) {
  const auto bound = call.bind({"precision", "method"});
  const auto number = call.subject().number();
  if (!number) throw call.error(concat("needs a number, got ", call.subject().kind()));
  if (bound[1] != nullptr && call.text(*bound[1]).bytes() != "common") {
    throw call.error("knows the common method only");
  }
  const int64_t precision = bound[0] == nullptr ? 0 : call.integer(*bound[0]);
  if (const auto integer = call.subject().integer_value()) {
    return rounded_integer(*integer, -precision, call);
  }
  if (precision < 0 || precision > 15) throw call.error("the precision must be in 0..15");
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(precision), *number);
  return Value(parsed_number(buffer, call).value_or(*number));
}

Value filter_abs(Call& call) {
  call.bind({});
  const Value& value = call.subject();
  if (!value.number()) throw call.error(concat("needs a number, got ", value.kind()));
  if (std::signbit(*value.number())) return negated(value, call.runtime);
  return value.as_bool() == nullptr ? value : Value(*value.integer_value());
}

Value filter_safe(Call& call) {
  call.bind({});
  Text text = soft_text(call);
  text.set_markup();
  return call.runtime.make(std::move(text));
}

constexpr Builtin kTextFilters[] = {{"string", filter_string},
                                    {"safe", filter_safe},
                                    {"trim", filter_trim},
                                    {"upper", filter_case<LetterCase::kUpper>},
                                    {"lower", filter_case<LetterCase::kLower>},
                                    {"capitalize", filter_case<LetterCase::kCapitalized>},
                                    {"title", filter_title},
                                    {"replace", filter_replace},
                                    {"format", filter_format},
                                    {"indent", filter_indent},
                                    {"tojson", filter_tojson},
                                    {"int", filter_int},
                                    {"float", filter_float},
                                    {"round", filter_round},
                                    {"abs", filter_abs}};

}  // namespace

Function find_text_filter(std::string_view name) { return find_builtin(kTextFilters, name); }

}  // namespace tessera::jinja
