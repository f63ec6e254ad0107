#include <cstring>

#include "engine/text/jinja/operators.h"

namespace tessera::jinja {
namespace {

constexpr uint64_t kComparedBytesPerStep = 64;

bool equal_lists(const List& left, const List& right, Runtime& runtime) {
  if (left.form() != right.form()) return false;
  if (left.elements().size() != right.elements().size()) return false;
  for (size_t i = 0; i < left.elements().size(); ++i) {
    if (!equals(left.elements()[i], right.elements()[i], runtime)) return false;
  }
  return true;
}

bool equal_dicts(const Dict& left, const Dict& right, Runtime& runtime) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* const other = right.find(key);
    if (other == nullptr || !equals(value, *other, runtime)) return false;
  }
  return true;
}

bool is_in(const Value& element, const Value& container, Runtime& runtime) {
  if (const Text* const text = container.as_text()) {
    if (element.as_text() == nullptr) {
      throw runtime.error(concat("'in' cannot look for ", element.kind(), " in a string"));
    }
    return find_text(text->bytes(), element.as_text()->bytes(), 0, runtime).has_value();
  }
  if (const Dict* const dict = container.as_dict()) {
    return dict->find(element) != nullptr;
  }
  if (Iterable* const iterable = container.as_iterable(); iterable && iterable->is_iterator()) {
    while (const auto candidate = first_element(container, runtime)) {
      if (equals(element, *candidate, runtime)) return true;
    }
    return false;
  }
  for (const Value& candidate : elements_of(container, runtime)) {
    if (equals(element, candidate, runtime)) return true;
  }
  return false;
}

}  // namespace

std::optional<size_t> find_text(std::string_view text, std::string_view needle, size_t begin,
                                Runtime& runtime) {
  const std::string_view rest = text.substr(begin);
  if (needle.empty()) return begin;
  const void* const found = memmem(rest.data(), rest.size(), needle.data(), needle.size());
  const size_t offset = found == nullptr
                            ? rest.size()
                            : static_cast<size_t>(static_cast<const char*>(found) - rest.data());
  runtime.count_steps(1 + (offset + needle.size()) / kComparedBytesPerStep);
  if (found == nullptr) return std::nullopt;
  return begin + offset;
}

bool equals(const Value& left, const Value& right, Runtime& runtime) {
  runtime.count_steps(1);
  if (left.integer_value() && right.integer_value()) {
    return *left.integer_value() == *right.integer_value();
  }
  if (left.number() && right.number()) return *left.number() == *right.number();
  if (left.as_text() != nullptr && right.as_text() != nullptr) {
    runtime.count_steps(left.as_text()->size() / kComparedBytesPerStep);
    return left.as_text()->bytes() == right.as_text()->bytes();
  }
  if (left.as_list() != nullptr && right.as_list() != nullptr) {
    return equal_lists(*left.as_list(), *right.as_list(), runtime);
  }
  if (left.as_dict() != nullptr && right.as_dict() != nullptr) {
    return equal_dicts(*left.as_dict(), *right.as_dict(), runtime);
  }
  if (left.as_iterable() != nullptr && right.as_iterable() != nullptr) {
    if (!left.as_iterable()->is_iterator() && !right.as_iterable()->is_iterator()) {
      throw runtime.error("comparing views of dicts is not supported");
    }
    return left.as_iterable() == right.as_iterable();
  }
  if (left.as_namespace() != nullptr) return left.as_namespace() == right.as_namespace();
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

bool is_less(const Value& left, const Value& right, Runtime& runtime) {
  if (left.integer_value() && right.integer_value()) {
    return *left.integer_value() < *right.integer_value();
  }
  if (left.number() && right.number()) return *left.number() < *right.number();
  if (left.as_text() == nullptr || right.as_text() == nullptr) {
    throw runtime.error(concat("cannot order ", left.kind(), " and ", right.kind()));
  }
  runtime.count_steps(1 + left.as_text()->size() / kComparedBytesPerStep);
  return left.as_text()->bytes() < right.as_text()->bytes();
}

bool compare(std::string_view name, const Value& left, const Value& right, Runtime& runtime) {
  if (name == "==") return equals(left, right, runtime);
  if (name == "!=") return !equals(left, right, runtime);
  if (name == "in") return is_in(left, right, runtime);
  if (name == "not in") return !is_in(left, right, runtime);
  if (name == "<") return is_less(left, right, runtime);
  if (name == ">") return is_less(right, left, runtime);
  const bool either = is_less(left, right, runtime) || equals(left, right, runtime);
  if (name == "<=") return either;
  return is_less(right, left, runtime) || equals(left, right, runtime);
}

}  // namespace tessera::jinja
