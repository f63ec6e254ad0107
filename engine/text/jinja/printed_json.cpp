#include <algorithm>
#include <cmath>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/printing.h"

namespace tessera::jinja {
namespace {

class JsonPrinter {
 public:
  JsonPrinter(const JsonStyle& style, Runtime& runtime) : style_(style), runtime_(runtime) {}

  void print(const Value& value) {
    runtime_.count_steps(1);
    if (const Text* const text = value.as_text()) {
      print_string(*text);
    } else if (const List* const list = value.as_list(); list != nullptr && !list->is_range()) {
      print_list(*list);
    } else if (const Dict* const dict = value.as_dict()) {
      print_dict(*dict);
    } else {
      add(atom(value));
    }
  }

  Text take() { return std::move(text_); }

 private:
  void add(std::string_view punctuation) { text_.append(punctuation, Origin::kData); }

  std::string atom(const Value& value) const {
    if (value.is_none()) return "null";
    if (const bool* const boolean = value.as_bool()) return *boolean ? "true" : "false";
    if (const int64_t* const integer = value.as_integer()) return std::to_string(*integer);
    if (const double* const number = value.as_float()) {
      if (std::isnan(*number)) return "NaN";
      if (std::isinf(*number)) return *number < 0 ? "-Infinity" : "Infinity";
      return printed_float(*number);
    }
    throw runtime_.error(concat("tojson: cannot print ", value.kind()));
  }

  void begin_line() {
    if (!style_.indent) return;
    runtime_.count_text(level_ * style_.indent->size());
    add("\n");
    for (size_t i = 0; i < level_; ++i) text_.append(*style_.indent);
  }

  void print_list(const List& list) {
    if (list.elements().empty()) return add("[]");
    add("[");
    ++level_;
    for (size_t i = 0; i < list.elements().size(); ++i) {
      if (i > 0) add(style_.item_separator);
      begin_line();
      print(list.elements()[i]);
    }
    --level_;
    begin_line();
    add("]");
  }

  void print_dict(const Dict& dict) {
    if (dict.entries().empty()) return add("{}");
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sorts_keys) {
      std::ranges::sort(entries, [&](const auto* left, const auto* right) {
        return is_less(left->first, right->first, runtime_);
      });
    }
    add("{");
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) add(style_.item_separator);
      begin_line();
      print_key(entries[i]->first);
      add(style_.key_separator);
      print(entries[i]->second);
    }
    --level_;
    begin_line();
    add("}");
  }

  // Of JSON, keys are text: an integer stands there in quotes.
  void print_key(const Value& key) {
    print_string(key.as_text() != nullptr ? *key.as_text() : Text(atom(key), Origin::kData));
  }

  void print_string(const Text& text) {
    runtime_.count_text(text.size());
    add("\"");
    size_t kept = 0;  // where the bytes that stand for themselves begin
    for (size_t i = 0; i < text.size();) {
      const Character character = character_at(text.bytes(), i);
      const std::string escape = escaped(character.code_point);
      const size_t begin = i;
      i += character.num_bytes;
      if (escape.empty()) continue;
      text_.append(text, kept, begin);
      runtime_.count_text(escape.size());
      add(escape);
      kept = i;
    }
    text_.append(text, kept, text.size());
    add("\"");
  }

  std::string escaped(char32_t c) const {
    constexpr std::string_view kEscapes = "\"\\\b\f\n\r\t";
    constexpr std::string_view kNames = "\"\\bfnrt";
    const size_t place = c < 0x80 ? kEscapes.find(static_cast<char>(c)) : std::string_view::npos;
    if (place != std::string_view::npos) return {'\\', kNames[place]};
    if (c >= 0x20 && (c < 0x7F || !style_.is_ascii)) return "";
    if (c < 0x10000) return escaped_unit(c);
    return escaped_unit(0xD7C0 + (c >> 10)) + escaped_unit(0xDC00 + (c & 0x3FF));
  }

  // Of UTF-16.
  static std::string escaped_unit(char32_t unit) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text = "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[unit >> shift & 15];
    return text;
  }

  const JsonStyle& style_;
  Runtime& runtime_;
  Text text_;
  size_t level_ = 0;
};

}  // namespace

Text printed_json(const Value& value, const JsonStyle& style, Runtime& runtime) {
  JsonPrinter printer(style, runtime);
  printer.print(value);
  return printer.take();
}

}  // namespace tessera::jinja
