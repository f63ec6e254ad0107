// Methods of dicts and lists. Those that would change them do not exist, as in the sandbox of
// Hugging Face.
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/operators.h"

namespace tessera::jinja {
namespace {

Value pair_of(const Dict::Entry& entry, Runtime& runtime) {
  return runtime.make({entry.first, entry.second}, List::Form::kTuple);
}

Value dict_get(Call& call) {
  const auto bound = call.bind_required({"key", "default"}, 1);
  if (const auto found = item_of(call.subject(), *bound[0], call.runtime)) return *found;
  return bound[1] == nullptr ? Value() : *bound[1];
}

Value dict_items(Call& call) {
  call.bind({});
  std::vector<Value> items;
  for (const Dict::Entry& entry : call.subject().as_dict()->entries()) {
    items.push_back(pair_of(entry, call.runtime));
  }
  return call.runtime.make_iterable(Iterable::Kind::kView, std::move(items));
}

Value dict_keys(Call& call) {
  call.bind({});
  return call.runtime.make_iterable(Iterable::Kind::kView,
                                    elements_of(call.subject(), call.runtime));
}

Value dict_values(Call& call) {
  call.bind({});
  std::vector<Value> values;
  for (const auto& [key, value] : call.subject().as_dict()->entries()) values.push_back(value);
  return call.runtime.make_iterable(Iterable::Kind::kView, std::move(values));
}

Value method_copy(Call& call) {
  call.bind({});
  return call.subject();
}

Value list_count(Call& call) {
  const auto bound = call.bind_required({"value"}, 1);
  int64_t count = 0;
  for (const Value& element : call.subject().as_list()->elements()) {
    count += equals(element, *bound[0], call.runtime);
  }
  return Value(count);
}

Value list_index(Call& call) {
  const auto bound = call.bind_required({"value"}, 1);
  int64_t index = 0;
  for (const Value& element : call.subject().as_list()->elements()) {
    if (equals(element, *bound[0], call.runtime)) return Value(index);
    ++index;
  }
  throw call.error("the list has no such element");
}

constexpr Builtin kDictMethods[] = {{"get", dict_get},
                                    {"items", dict_items},
                                    {"keys", dict_keys},
                                    {"values", dict_values},
                                    {"copy", method_copy}};

constexpr Builtin kListMethods[] = {
    {"count", list_count}, {"index", list_index}, {"copy", method_copy}};

}  // namespace

Function find_method(const Value& value, std::string_view name) {
  if (value.as_text() != nullptr) return find_text_method(name);
  if (value.as_dict() != nullptr) return find_builtin(kDictMethods, name);
  if (value.as_list() != nullptr) return find_builtin(kListMethods, name);
  return nullptr;
}

}  // namespace tessera::jinja
