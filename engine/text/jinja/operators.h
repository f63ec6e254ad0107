// The operators of expressions, as Python defines them for the values of templates.
#pragma once

#include <optional>
#include <string_view>

#include "engine/text/jinja/runtime.h"

namespace tessera::jinja {

// + - * / // % **. Throws Error for values that have no such operator, for integers that 64 bits
// do not hold and for division by zero.
Value apply_binary(std::string_view name, const Value& left, const Value& right, Runtime& runtime);
Value negated(const Value& value, Runtime& runtime);

// Values of different kinds differ, but for numbers: 1 == 1.0 == true.
bool equals(const Value& left, const Value& right, Runtime& runtime);
// Of numbers, and of texts by code points. Throws Error for anything else.
bool is_less(const Value& left, const Value& right, Runtime& runtime);
// == != < <= > >= in, not in
bool compare(std::string_view name, const Value& left, const Value& right, Runtime& runtime);

// The first place of `needle` in `text` from `begin` on, in bytes, in linear time.
std::optional<size_t> find_text(std::string_view text, std::string_view needle, size_t begin,
                                Runtime& runtime);

// What a loop goes over: elements, keys, or characters; nothing for an undefined value. Of an
// iterator those that are left, and then none are.
std::vector<Value> elements_of(const Value& value, Runtime& runtime);
// Only the first of them is seen.
std::optional<Value> first_element(const Value& value, Runtime& runtime);

// text % arguments, of which a tuple holds several.
Value format_text(const Text& format, const Value& arguments, Runtime& runtime);

// value[index] and value[start:stop:step], whose parts may be none. An index that is not there
// gives nothing.
std::optional<Value> item_of(const Value& value, const Value& index, Runtime& runtime);
Value slice_of(const Value& value, const Value& start, const Value& stop, const Value& step,
               Runtime& runtime);

}  // namespace tessera::jinja
