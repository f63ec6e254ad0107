// Filters of lists and dicts.
#include <algorithm>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/printing.h"
#include "engine/text/jinja/scope.h"
#include "engine/text/jinja/text_operations.h"

namespace tessera::jinja {
namespace {

bool is_iterator(const Value& value) {
  return value.as_iterable() != nullptr && value.as_iterable()->is_iterator();
}

std::vector<Value> subject_elements(Call& call) {
  return elements_of(call.subject(), call.runtime);
}

Value filter_list(Call& call) {
  call.bind({});
  return call.runtime.make(subject_elements(call));
}

Value filter_length(Call& call) {
  call.bind({});
  const Value& value = call.subject();
  const auto length = [](size_t size) { return Value(static_cast<int64_t>(size)); };
  if (const Text* const text = value.as_text()) {
    call.runtime.count_steps(text->size() / 64);
    return length(count_characters(text->bytes()));
  }
  if (const List* const list = value.as_list()) return length(list->elements().size());
  if (const Dict* const dict = value.as_dict()) return length(dict->entries().size());
  if (const Iterable* const iterable = value.as_iterable(); iterable && !iterable->is_iterator()) {
    return length(iterable->elements.size());
  }
  if (const LoopState* const loop = value.as_loop()) return length(loop->elements.size());
  if (value.is_undefined()) return length(0);
  throw call.error(concat(value.kind(), " has no length"));
}

Value filter_default(Call& call) {
  const auto bound = call.bind({"default_value", "boolean"});
  const bool replaces_false = bound[1] != nullptr && bound[1]->is_true();
  const Value& value = call.subject();
  if (!value.is_undefined() && !(replaces_false && !value.is_true())) return value;
  return bound[0] == nullptr ? Value(Text()) : *bound[0];
}

Value filter_first(Call& call) {
  call.bind({});
  return first_element(call.subject(), call.runtime).value_or(Value::undefined("first element"));
}

Value filter_last(Call& call) {
  call.bind({});
  if (is_iterator(call.subject())) throw call.error("an iterator has no last element");
  const std::vector<Value> elements = subject_elements(call);
  return elements.empty() ? Value::undefined("last element") : elements.back();
}

Value filter_join(Call& call) {
  const auto bound = call.bind({"d", "attribute"});
  const Text separator = bound[0] == nullptr ? Text() : printed(*bound[0], call.runtime);
  Text result;
  bool is_first = true;
  for (const Value& element : subject_elements(call)) {
    const Value value =
        bound[1] == nullptr ? element : attribute_path(element, *bound[1], call.runtime);
    const Text text = printed(value, call.runtime);
    call.runtime.count_text(separator.size() + text.size());
    if (!is_first) result.append(separator);
    result.append(text);
    is_first = false;
  }
  return call.runtime.make(std::move(result));
}

Value filter_reverse(Call& call) {
  call.bind({});
  if (call.subject().as_text() != nullptr) {
    return slice_of(call.subject(), Value(), Value(), Value(int64_t{-1}), call.runtime);
  }
  std::vector<Value> elements = subject_elements(call);
  std::ranges::reverse(elements);
  // Python has to see all of an iterator first, and keeps them in a list.
  if (is_iterator(call.subject())) return call.runtime.make(std::move(elements));
  return call.runtime.make_iterable(Iterable::Kind::kIterator, std::move(elements));
}

Value filter_items(Call& call) {
  call.bind({});
  std::vector<Value> items;
  if (const Dict* const dict = call.subject().as_dict()) {
    for (const auto& [key, value] : dict->entries()) {
      items.push_back(call.runtime.make({key, value}, List::Form::kTuple));
    }
  } else if (!call.subject().is_undefined()) {
    throw call.error(concat("needs a dict, got ", call.subject().kind()));
  }
  return call.runtime.make_iterable(Iterable::Kind::kIterator, std::move(items));
}

// What filters that order values compare: letters of either case are equal unless asked.
Value sort_key(const Value& value, bool is_case_sensitive, Runtime& runtime) {
  const Text* const text = value.as_text();
  if (text == nullptr || is_case_sensitive) return value;
  return Value(with_case(*text, LetterCase::kLower, runtime));
}

using Keyed = std::pair<Value, Value>;  // what is compared, and its element

Value sorted(std::vector<Keyed> keyed, bool is_reversed, Runtime& runtime) {
  std::ranges::stable_sort(keyed, [&](const Keyed& left, const Keyed& right) {
    runtime.count_steps(1);
    return is_reversed ? is_less(right.first, left.first, runtime)
                       : is_less(left.first, right.first, runtime);
  });
  std::vector<Value> elements;
  for (Keyed& entry : keyed) elements.push_back(std::move(entry.second));
  return runtime.make(std::move(elements));
}

bool flag(const Value* value) { return value != nullptr && value->is_true(); }

Value filter_sort(Call& call) {
  const auto bound = call.bind({"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> keyed;
  for (const Value& element : subject_elements(call)) {
    const Value value =
        bound[2] == nullptr ? element : attribute_path(element, *bound[2], call.runtime);
    keyed.emplace_back(sort_key(value, flag(bound[1]), call.runtime), element);
  }
  return sorted(std::move(keyed), flag(bound[0]), call.runtime);
}

Value filter_dictsort(Call& call) {
  const auto bound = call.bind({"case_sensitive", "by", "reverse"});
  if (call.subject().as_dict() == nullptr) throw call.error("needs a dict");
  const bool by_value = bound[1] != nullptr && call.text(*bound[1]).bytes() == "value";
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : call.subject().as_dict()->entries()) {
    keyed.emplace_back(sort_key(by_value ? value : key, flag(bound[0]), call.runtime),
                       call.runtime.make({key, value}, List::Form::kTuple));
  }
  return sorted(std::move(keyed), flag(bound[2]), call.runtime);
}

Value filter_unique(Call& call) {
  const auto bound = call.bind({"case_sensitive"});
  std::vector<Value> keys;
  std::vector<Value> elements;
  for (const Value& element : subject_elements(call)) {
    const Value key = sort_key(element, flag(bound[0]), call.runtime);
    const bool is_known = std::ranges::any_of(
        keys, [&](const Value& known) { return equals(known, key, call.runtime); });
    if (is_known) continue;
    keys.push_back(key);
    elements.push_back(element);
  }
  return make_lazy(std::move(elements), call);
}

template <bool kIsMax>
Value filter_extreme(Call& call) {
  const auto bound = call.bind({"case_sensitive"});
  std::optional<Keyed> best;
  for (const Value& element : subject_elements(call)) {
    Value key = sort_key(element, flag(bound[0]), call.runtime);
    if (!best || (kIsMax ? is_less(best->first, key, call.runtime)
                         : is_less(key, best->first, call.runtime))) {
      best = Keyed(std::move(key), element);
    }
  }
  return best ? best->second : Value::undefined("extreme of nothing");
}

Value filter_sum(Call& call) {
  const auto bound = call.bind({"attribute", "start"});
  Value total = bound[1] == nullptr ? Value(int64_t{0}) : *bound[1];
  for (const Value& element : subject_elements(call)) {
    const bool has_path = bound[0] != nullptr && !bound[0]->is_none();
    const Value value = has_path ? attribute_path(element, *bound[0], call.runtime) : element;
    total = apply_binary("+", total, value, call.runtime);
  }
  return total;
}

constexpr Builtin kListFilters[] = {
    {"list", filter_list},       {"length", filter_length},     {"count", filter_length},
    {"default", filter_default}, {"d", filter_default},         {"first", filter_first},
    {"last", filter_last},       {"join", filter_join},         {"reverse", filter_reverse},
    {"items", filter_items},     {"sort", filter_sort},         {"dictsort", filter_dictsort},
    {"unique", filter_unique},   {"max", filter_extreme<true>}, {"min", filter_extreme<false>},
    {"sum", filter_sum}};

}  // namespace

Function find_list_filter(std::string_view name) { return find_builtin(kListFilters, name); }

}  // namespace tessera::jinja
