#include "engine/text/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "engine/text/jinja/iterable.h"
#include "kernels/tensor/check.h"

namespace tessera::jinja {

Value::Value(List value) : data_(std::make_shared<const List>(std::move(value))) {}
Value::Value(Dict value) : data_(std::make_shared<const Dict>(std::move(value))) {}
Value::Value(Iterable value) : data_(std::make_shared<Iterable>(std::move(value))) {}
Value::Value(Callable value) : data_(std::make_shared<const Callable>(std::move(value))) {}

Value Value::undefined(std::string_view name) {
  return Value(Undefined{std::make_shared<const std::string>(name)});
}

std::optional<int64_t> Value::integer_value() const {
  if (const int64_t* const integer = as_integer()) return *integer;
  if (const bool* const boolean = as_bool()) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const double* const number = as_float()) return *number;
  if (const auto integer = integer_value()) return static_cast<double>(*integer);
  return std::nullopt;
}

bool Value::is_true() const {
  if (is_undefined() || is_none()) return false;
  if (const auto value = number()) return *value != 0;
  if (const Text* const text = as_text()) return !text->empty();
  if (const List* const list = as_list()) return !list->elements().empty();
  if (const Dict* const dict = as_dict()) return !dict->entries().empty();
  if (const Iterable* const iterable = as_iterable()) {
    return iterable->is_iterator() || !iterable->elements.empty();
  }
  return true;
}

std::string_view Value::kind() const {
  if (is_undefined()) return "an undefined value";
  if (is_none()) return "none";
  if (as_bool() != nullptr) return "a boolean";
  if (as_integer() != nullptr) return "an integer";
  if (as_float() != nullptr) return "a float";
  if (as_text() != nullptr) return "a string";
  if (as_list() != nullptr) {
    return as_list()->is_tuple() ? "a tuple" : as_list()->is_range() ? "a range" : "a list";
  }
  if (as_dict() != nullptr) return "a dict";
  if (as_iterable() != nullptr) {
    return as_iterable()->is_iterator() ? "an iterator (| list makes it a list)"
                                        : "a view of a dict (| list makes it a list)";
  }
  if (as_namespace() != nullptr) return "a namespace";
  if (as_loop() != nullptr) return "a loop";
  return "a function";
}

int Value::nesting() const {
  if (const List* const list = as_list()) return list->nesting();
  if (const Dict* const dict = as_dict()) return dict->nesting();
  if (const Iterable* const iterable = as_iterable()) return iterable->nesting;
  return 0;
}

void check_element(const Value& element) {
  const bool is_value = element.as_namespace() == nullptr && element.as_callable() == nullptr &&
                        element.as_loop() == nullptr;
  if (!is_value) {
    throw ElementError(concat("a list, dict or namespace cannot hold ", element.kind()));
  }
  if (element.nesting() >= kMaxValueNesting) {
    throw ElementError(concat("lists and dicts are nested deeper than ", kMaxValueNesting));
  }
}

namespace {

int nesting_around(const std::vector<Value>& elements) {
  int nesting = 1;
  for (const Value& element : elements) {
    check_element(element);
    nesting = std::max(nesting, element.nesting() + 1);
  }
  return nesting;
}

}  // namespace

List::List(std::vector<Value> elements, Form form)
    : elements_(std::move(elements)), form_(form), nesting_(nesting_around(elements_)) {}

Iterable::Iterable(Kind of_kind, std::vector<Value> of_elements)
    : kind(of_kind), elements(std::move(of_elements)), nesting(nesting_around(elements)) {}

const Value* Dict::find(std::string_view key) const {
  const auto found = places_.find(std::string(key));
  return found == places_.end() ? nullptr : &entries_[found->second].second;
}

const Value* Dict::find(const Value& key) const {
  if (key.as_text() != nullptr) return find(key.as_text()->bytes());
  auto integer = key.integer_value();
  const double* const number = key.as_float();
  const bool may_be_integer = number != nullptr && std::abs(*number) < 0x1p63;
  if (may_be_integer && std::trunc(*number) == *number) integer = static_cast<int64_t>(*number);
  const auto found = integer ? integer_places_.find(*integer) : integer_places_.end();
  return found == integer_places_.end() ? nullptr : &entries_[found->second].second;
}

template <typename Places, typename Key>
void Dict::store(Places& places, const Key& place_key, const Value& key, Value value) {
  check_element(value);
  nesting_ = std::max(nesting_, value.nesting() + 1);
  const auto [place, is_new] = places.emplace(place_key, entries_.size());
  if (is_new) {
    entries_.emplace_back(key, std::move(value));
  } else {
    entries_[place->second].second = std::move(value);
  }
}

void Dict::set(const Text& key, Value value) { set(Value(key), std::move(value)); }

void Dict::set(const Value& key, Value value) {
  if (const Text* const text = key.as_text()) {
    store(places_, text->bytes(), key, std::move(value));
  } else {
    CHECK(key.as_integer() != nullptr, "a key of a dict must be a string or an integer, got ",
          key.kind());
    store(integer_places_, *key.as_integer(), key, std::move(value));
  }
}

}  // namespace tessera::jinja
