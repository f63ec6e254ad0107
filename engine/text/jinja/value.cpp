#include "engine/text/jinja/value.h"

#include <algorithm>

#include "kernels/tensor/check.h"

namespace tessera::jinja {

Value::Value(List value) : data_(std::make_shared<const List>(std::move(value))) {}
Value::Value(Dict value) : data_(std::make_shared<const Dict>(std::move(value))) {}
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
  return true;
}

std::string_view Value::kind() const {
  if (is_undefined()) return "an undefined value";
  if (is_none()) return "none";
  if (as_bool() != nullptr) return "a boolean";
  if (as_integer() != nullptr) return "an integer";
  if (as_float() != nullptr) return "a float";
  if (as_text() != nullptr) return "a string";
  if (as_list() != nullptr) return as_list()->is_tuple() ? "a tuple" : "a list";
  if (as_dict() != nullptr) return "a dict";
  if (as_namespace() != nullptr) return "a namespace";
  return "a function";
}

int Value::nesting() const {
  if (const List* const list = as_list()) return list->nesting();
  if (const Dict* const dict = as_dict()) return dict->nesting();
  return 0;
}

void check_element(const Value& element) {
  CHECK(element.as_namespace() == nullptr && element.as_callable() == nullptr,
        "a list, dict or namespace cannot hold ", element.kind());
  CHECK(element.nesting() < kMaxValueNesting, "lists and dicts are nested deeper than ",
        kMaxValueNesting);
}

List::List(std::vector<Value> elements, bool is_tuple)
    : elements_(std::move(elements)), is_tuple_(is_tuple) {
  for (const Value& element : elements_) {
    check_element(element);
    nesting_ = std::max(nesting_, element.nesting() + 1);
  }
}

const Value* Dict::find(std::string_view key) const {
  const auto found = places_.find(std::string(key));
  return found == places_.end() ? nullptr : &entries_[found->second].second;
}

const Value* Dict::find(const Value& key) const {
  if (key.as_text() != nullptr) return find(key.as_text()->bytes());
  const auto integer = key.integer_value();
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
