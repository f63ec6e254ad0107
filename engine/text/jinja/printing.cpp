#include "engine/text/jinja/printing.h"

#include <charconv>
#include <cmath>

#include "engine/text/jinja/characters.h"

namespace tessera::jinja {
namespace {

// Python's repr() of values, appended to one text.
class ReprPrinter {
 public:
  ReprPrinter(Text& text, Runtime& runtime) : text_(text), runtime_(runtime) {}

  void print(const Value& value) {
    runtime_.count_steps(1);
    if (const Text* const text = value.as_text()) {
      print_string(*text);
    } else if (const List* const list = value.as_list(); list != nullptr && !list->is_range()) {
      print_list(*list);
    } else if (const Dict* const dict = value.as_dict()) {
      print_dict(*dict);
    } else {
      text_.append(value.is_undefined() ? Text("Undefined", Origin::kData)
                                        : printed(value, runtime_));
    }
  }

 private:
  void add(std::string_view punctuation) { text_.append(punctuation, Origin::kData); }

  void print_list(const List& list) {
    add(list.is_tuple() ? "(" : "[");
    for (size_t i = 0; i < list.elements().size(); ++i) {
      if (i > 0) add(", ");
      print(list.elements()[i]);
    }
    if (list.is_tuple() && list.elements().size() == 1) add(",");
    add(list.is_tuple() ? ")" : "]");
  }

  void print_dict(const Dict& dict) {
    add("{");
    for (size_t i = 0; i < dict.entries().size(); ++i) {
      if (i > 0) add(", ");
      print(dict.entries()[i].first);
      add(": ");
      print(dict.entries()[i].second);
    }
    add("}");
  }

  void print_string(const Text& text) {
    runtime_.count_text(text.size());
    if (text.is_markup()) add("Markup(");
    const std::string& bytes = text.bytes();
    const bool has_single = bytes.find('\'') != std::string::npos;
    const bool has_double = bytes.find('"') != std::string::npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    add({&quote, 1});
    for (size_t i = 0; i < bytes.size();) {
      const Character character = character_at(bytes, i);
      if (const std::string escape = escaped(character.code_point, quote); !escape.empty()) {
        add(escape);
      } else {
        text_.append(text, i, i + character.num_bytes);
      }
      i += character.num_bytes;
    }
    add({&quote, 1});
    if (text.is_markup()) add(")");
  }

  // "" for what stands for itself.
  static std::string escaped(char32_t c, char quote) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (c == static_cast<char32_t>(quote)) return {'\\', quote};
    if (c == '\\') return "\\\\";
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    if (is_printable(c)) return "";
    const bool is_byte = c < 0x100;
    std::string escape = is_byte ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
    for (int shift = is_byte ? 4 : c < 0x10000 ? 12 : 28; shift >= 0; shift -= 4) {
      escape += kDigits[c >> shift & 15];
    }
    return escape;
  }

  Text& text_;
  Runtime& runtime_;
};

// Digits without a point, and where it belongs: 1234 and 2 are 12.34.
struct Decimal {
  std::string digits;
  int point = 0;
};

Decimal shortest_decimal(double magnitude) {
  char buffer[32];
  const auto result =
      std::to_chars(buffer, buffer + sizeof(buffer), magnitude, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  const size_t exponent_at = text.find('e');
  Decimal decimal;
  for (const char c : text.substr(0, exponent_at)) {
    if (c != '.') decimal.digits += c;
  }
  decimal.point = std::stoi(std::string(text.substr(exponent_at + 1))) + 1;
  return decimal;
}

std::string with_exponent(Decimal decimal) {
  const int exponent = decimal.point - 1;
  if (decimal.digits.size() > 1) decimal.digits.insert(1, ".");
  const std::string magnitude = std::to_string(std::abs(exponent));
  return decimal.digits + (exponent < 0 ? "e-" : "e+") + (magnitude.size() < 2 ? "0" : "") +
         magnitude;
}

}  // namespace

std::string printed_float(double number) {
  if (std::isnan(number)) return "nan";
  const std::string sign = std::signbit(number) ? "-" : "";
  if (std::isinf(number)) return sign + "inf";
  Decimal decimal = shortest_decimal(std::abs(number));
  if (decimal.point > 16 || decimal.point < -3) return sign + with_exponent(std::move(decimal));
  std::string& digits = decimal.digits;
  if (decimal.point <= 0) {
    return sign + "0." + std::string(static_cast<size_t>(-decimal.point), '0') + digits;
  }
  const auto point = static_cast<size_t>(decimal.point);
  if (digits.size() <= point) return sign + digits + std::string(point - digits.size(), '0') + ".0";
  return sign + digits.insert(point, ".");
}

Text printed(const Value& value, Runtime& runtime) {
  const auto trusted = [](std::string_view text) { return Text(text, Origin::kTemplate); };
  if (const Text* const text = value.as_text()) return *text;
  if (value.is_undefined()) return {};
  if (value.is_none()) return trusted("None");
  if (const bool* const boolean = value.as_bool()) return trusted(*boolean ? "True" : "False");
  if (const int64_t* const integer = value.as_integer()) return trusted(std::to_string(*integer));
  if (const double* const number = value.as_float()) return trusted(printed_float(*number));
  const bool is_list = value.as_list() != nullptr && !value.as_list()->is_range();
  if (!is_list && value.as_dict() == nullptr) {
    throw runtime.error(concat("cannot print ", value.kind()));
  }
  Text text;
  ReprPrinter(text, runtime).print(value);
  runtime.count_text(text.size());
  return text;
}

}  // namespace tessera::jinja
