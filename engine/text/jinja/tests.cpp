// value is name
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/printing.h"
#include "engine/text/jinja/text_operations.h"

namespace tessera::jinja {
namespace {

template <bool (*kHolds)(const Value&)>
Value plain_test(Call& call) {
  call.bind({});
  return Value(kHolds(call.subject()));
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.as_bool() != nullptr; }
bool is_true(const Value& value) { return is_boolean(value) && value.is_true(); }
bool is_false(const Value& value) { return is_boolean(value) && !value.is_true(); }
bool is_integer(const Value& value) { return value.as_integer() != nullptr; }
bool is_float(const Value& value) { return value.as_float() != nullptr; }
bool is_number(const Value& value) { return value.number().has_value(); }
bool is_string(const Value& value) { return value.as_text() != nullptr; }
bool is_mapping(const Value& value) { return value.as_dict() != nullptr; }
bool is_callable(const Value& value) {
  return value.as_callable() != nullptr || value.as_loop() != nullptr || value.is_undefined();
}
// Also undefined values, which have no elements, and length 0.
bool is_sequence(const Value& value) {
  return is_string(value) || is_mapping(value) || value.as_list() != nullptr ||
         value.is_undefined();
}

bool is_iterable(const Value& value) {
  return is_sequence(value) || value.as_iterable() != nullptr || value.as_loop() != nullptr;
}

// Of what any value prints.
template <LetterCase kCase>
Value test_case(Call& call) {
  call.bind({});
  const Text text = printed(call.subject(), call.runtime);
  return Value(has_only_case(text.bytes(), kCase, call.runtime));
}

template <bool kIsOdd>
Value test_parity(Call& call) {
  call.bind({});
  return Value((call.integer(call.subject()) % 2 != 0) == kIsOdd);
}

Value test_divisible(Call& call) {
  const int64_t divisor = call.integer(*call.bind_required({"num"}, 1)[0]);
  if (divisor == 0) throw call.error("division by zero");
  return Value(divisor == -1 || call.integer(call.subject()) % divisor == 0);
}

// The same operator whatever name the test goes by.
Value test_comparison(Call& call) {
  constexpr std::pair<std::string_view, std::string_view> kOperators[] = {
      {"eq", "=="}, {"equalto", "=="}, {"ne", "!="},         {"lt", "<"},  {"lessthan", "<"},
      {"le", "<="}, {"gt", ">"},       {"greaterthan", ">"}, {"ge", ">="}, {"in", "in"}};
  const auto bound = call.bind_required({"other"}, 1);
  std::string_view symbol = call.name;
  for (const auto& [name, meaning] : kOperators) {
    if (name == call.name) symbol = meaning;
  }
  return Value(compare(symbol, call.subject(), *bound[0], call.runtime));
}

// Lists and dicts have an identity; of what else does, equal values are the same.
Value test_same(Call& call) {
  const Value& other = *call.bind_required({"other"}, 1)[0];
  const List* const list = call.subject().as_list();
  if (list != nullptr && list->form() == List::Form::kList) return Value(list == other.as_list());
  if (const Dict* const dict = call.subject().as_dict()) return Value(dict == other.as_dict());
  return Value(call.subject().kind() == other.kind() &&
               equals(call.subject(), other, call.runtime));
}

constexpr Builtin kTests[] = {
    {"defined", plain_test<is_defined>},
    {"undefined", plain_test<is_undefined>},
    {"none", plain_test<is_none>},
    {"boolean", plain_test<is_boolean>},
    {"true", plain_test<is_true>},
    {"false", plain_test<is_false>},
    {"integer", plain_test<is_integer>},
    {"float", plain_test<is_float>},
    {"number", plain_test<is_number>},
    {"string", plain_test<is_string>},
    {"mapping", plain_test<is_mapping>},
    {"sequence", plain_test<is_sequence>},
    {"iterable", plain_test<is_iterable>},
    {"callable", plain_test<is_callable>},
    {"upper", test_case<LetterCase::kUpper>},
    {"lower", test_case<LetterCase::kLower>},
    {"odd", test_parity<true>},
    {"even", test_parity<false>},
    {"divisibleby", test_divisible},
    {"eq", test_comparison},
    {"equalto", test_comparison},
    {"==", test_comparison},
    {"ne", test_comparison},
    {"!=", test_comparison},
    {"lt", test_comparison},
    {"lessthan", test_comparison},
    {"<", test_comparison},
    {"le", test_comparison},
    {"<=", test_comparison},
    {"gt", test_comparison},
    {"greaterthan", test_comparison},
    {">", test_comparison},
    {"ge", test_comparison},
    {">=", test_comparison},
    {"in", test_comparison},
    {"sameas", test_same},
};

}  // namespace

Function find_test(std::string_view name) { return find_builtin(kTests, name); }

}  // namespace tessera::jinja
