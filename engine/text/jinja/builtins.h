// What templates call by name. Each finder gives nullptr for a name that does not exist.
#pragma once

#include <string_view>

#include "engine/text/jinja/runtime.h"

namespace tessera::jinja {

// value | name(...)
Function find_filter(std::string_view name);
Function find_text_filter(std::string_view name);
Function find_list_filter(std::string_view name);
Function find_selecting_filter(std::string_view name);

// value is name(...), which gives a boolean
Function find_test(std::string_view name);

// value.name(...) of texts, dicts and lists
Function find_method(const Value& value, std::string_view name);
Function find_text_method(std::string_view name);
// text.format(...) as Python has it. Throws Error for what it does not know: !r, fields in fields.
Value method_format(Call& call);

// raise_exception, strftime_now, namespace, range, dict
Function find_function(std::string_view name);

// A row of the tables behind these.
struct Builtin {
  std::string_view name;
  Function function;
};

template <size_t kSize>
Function find_builtin(const Builtin (&table)[kSize], std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) return builtin.function;
  }
  return nullptr;
}

// value.attribute or value[attribute]; dots in a text lead on from attribute to attribute.
// Undefined where there is none.
Value attribute_path(const Value& value, const Value& path, Runtime& runtime);

// The result of a filter that Python runs as late as it can: an iterator, which leaves open how
// much of an iterator it was made of has been seen.
Value make_lazy(std::vector<Value> elements, Call& call);

}  // namespace tessera::jinja
