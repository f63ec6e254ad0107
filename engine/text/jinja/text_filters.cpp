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
  return call.runtime.make(with_case(soft_text(call), kCase, call));
}

// Words begin behind white space and -, (, {, [, <.
Value filter_title(Call& call) {
  call.bind({});
  const Text text = soft_text(call);
  const Text lower = with_case(text, LetterCase::kLower, call);
  const Text upper = with_case(text, LetterCase::kUpper, call);
  Text result;
  bool begins_word = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes()[i];
    result.append(begins_word ? upper : lower, i, i + 1);
    begins_word = std::string_view("-({[<").find(c) != std::string_view::npos ||
                  is_space(static_cast<unsigned char>(c));
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
  return format_text(call.text(), Value(List(std::move(arguments), /*is_tuple=*/true)),
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
  if (bound[0] != nullptr && bound[0]->is_true()) throw call.error("cannot escape non-ASCII");
  JsonStyle style = {.item_separator = ", ", .key_separator = ": "};
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

// A number in a text, with white space around it.
std::optional<double> parsed_number(std::string_view text) {
  while (!text.empty() && is_space(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && is_space(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::optional<double> as_number(const Value& value) {
  return value.as_text() != nullptr ? parsed_number(value.as_text()->bytes()) : value.number();
}

Value filter_int(Call& call) {
  const auto bound = call.bind({"default", "base"});
  if (bound[1] != nullptr) throw call.error("knows base 10 only");
  if (const auto integer = call.subject().integer_value()) return Value(*integer);
  const auto number = as_number(call.subject());
  if (number && std::abs(*number) < 9e15) return Value(static_cast<int64_t>(*number));
  if (number && std::isfinite(*number)) throw call.error("integer overflow");
  return bound[0] == nullptr ? Value(int64_t{0}) : *bound[0];
}

Value filter_float(Call& call) {
  const auto bound = call.bind({"default"});
  if (const auto number = as_number(call.subject())) return Value(*number);
  return bound[0] == nullptr ? Value(0.0) : *bound[0];
}

Value filter_round(Call& call) {
  const auto bound = call.bind({"precision", "method"});
  const auto number = call.subject().number();
  if (!number) throw call.error(concat("needs a number, got ", call.subject().kind()));
  if (bound[1] != nullptr) throw call.error("knows the common method only");
  if (const auto integer = call.subject().integer_value()) return Value(*integer);
  const int64_t precision = bound[0] == nullptr ? 0 : call.integer(*bound[0]);
  if (precision < 0 || precision > 15) throw call.error("the precision must be in 0..15");
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(precision), *number);
  return Value(parsed_number(buffer).value_or(*number));
}

Value filter_abs(Call& call) {
  call.bind({});
  const Value& value = call.subject();
  if (!value.number()) throw call.error(concat("needs a number, got ", value.kind()));
  if (*value.number() < 0) return negated(value, call.runtime);
  return value.as_bool() == nullptr ? value : Value(*value.integer_value());
}

Value filter_safe(Call& call) { return filter_string(call); }

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
