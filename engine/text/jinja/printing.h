// Values as text: what Python's str(), repr() and json.dumps() make of them.
#pragma once

#include <optional>
#include <string>

#include "engine/text/jinja/runtime.h"

namespace tessera::jinja {

// The shortest digits that read back as the same number: 0.1, 1e+16, 2.0, inf, nan.
std::string printed_float(double number);

// What {{ value }} prints. Text keeps its origins, numbers and names are the template's, and what
// is added to the elements of lists and dicts is data.
Text printed(const Value& value, Runtime& runtime);

struct JsonStyle {
  std::optional<Text> indent;  // of a level; without it everything is on one line
  std::string item_separator;
  std::string key_separator;
  bool sorts_keys = false;
  bool is_ascii = false;  // other characters are escaped
};

// Strings keep the origins of their characters; escapes and punctuation are data.
Text printed_json(const Value& value, const JsonStyle& style, Runtime& runtime);

}  // namespace tessera::jinja
