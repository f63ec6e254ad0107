// Elements, items and slices of lists, dicts and texts.
#include <algorithm>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/operators.h"

namespace tessera::jinja {
namespace {

Value character_of(const Text& text, const std::vector<size_t>& offsets, size_t index) {
  return Value(text.slice(offsets[index], offsets[index + 1]));
}

// As Python goes through markup: its characters are none, while an item of it is.
Value plain_character_of(const Text& text, const std::vector<size_t>& offsets, size_t index) {
  Text character;
  character.append(text, offsets[index], offsets[index + 1]);
  return Value(std::move(character));
}

std::vector<size_t> counted_offsets(const Text& text, Runtime& runtime) {
  runtime.count_text(text.size() * sizeof(size_t));
  return character_offsets(text.bytes());
}

// Indexes of [start:stop:step] in a sequence of `size`, as Python clamps them.
std::vector<size_t> slice_indexes(const Value& start, const Value& stop, const Value& step,
                                  int64_t size, Runtime& runtime) {
  const auto part = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    const auto integer = value.integer_value();
    if (!integer) throw runtime.error(concat("a slice needs integers, got ", value.kind()));
    return *integer;
  };
  const int64_t stride = part(step, 1);
  if (stride == 0) throw runtime.error("the step of a slice is 0");
  const int64_t low = stride < 0 ? -1 : 0;
  const int64_t high = stride < 0 ? size - 1 : size;
  const auto clamped = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    const int64_t index = part(value, 0);
    return std::clamp(index < 0 ? std::max(index, -size - 1) + size : index, low, high);
  };
  const int64_t first = clamped(start, stride < 0 ? high : low);
  const int64_t end = clamped(stop, stride < 0 ? low : high);
  std::vector<size_t> indexes;
  // A stride beyond the size reaches one element, and none twice.
  const int64_t bounded = std::clamp(stride, -size - 1, size + 1);
  for (int64_t i = first; stride < 0 ? i > end : i < end; i += bounded) {
    indexes.push_back(static_cast<size_t>(i));
  }
  runtime.count_elements(indexes.size());
  return indexes;
}

void check_is_closed(const Iterable& iterable, const Runtime& runtime) {
  if (iterable.is_open) {
    throw runtime.error("an iterator that was left before its end is not supported again");
  }
}

}  // namespace

std::vector<Value> elements_of(const Value& value, Runtime& runtime) {
  std::vector<Value> elements;
  if (value.is_undefined()) return elements;
  if (const List* const list = value.as_list()) {
    runtime.count_elements(list->elements().size());
    return list->elements();
  }
  if (const Dict* const dict = value.as_dict()) {
    runtime.count_elements(dict->entries().size());
    for (const auto& [key, element] : dict->entries()) elements.push_back(key);
    return elements;
  }
  if (const Text* const text = value.as_text()) {
    const std::vector<size_t> offsets = counted_offsets(*text, runtime);
    runtime.count_elements(3 * offsets.size());
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      elements.push_back(plain_character_of(*text, offsets, i));
    }
    return elements;
  }
  if (Iterable* const iterable = value.as_iterable()) {
    check_is_closed(*iterable, runtime);
    runtime.count_elements(iterable->elements.size() - iterable->next);
    if (!iterable->is_iterator()) return iterable->elements;
    const auto rest = iterable->elements.begin() + static_cast<ptrdiff_t>(iterable->next);
    elements.assign(rest, iterable->elements.end());
    iterable->next = iterable->elements.size();
    return elements;
  }
  throw runtime.error(concat(value.kind(), " has no elements"));
}

std::optional<Value> first_element(const Value& value, Runtime& runtime) {
  Iterable* const iterable = value.as_iterable();
  if (iterable == nullptr || !iterable->is_iterator()) {
    const std::vector<Value> elements = elements_of(value, runtime);
    return elements.empty() ? std::nullopt : std::optional(elements.front());
  }
  check_is_closed(*iterable, runtime);
  if (iterable->next == iterable->elements.size()) return std::nullopt;
  return iterable->elements[iterable->next++];
}

std::optional<Value> item_of(const Value& value, const Value& index, Runtime& runtime) {
  if (const Dict* const dict = value.as_dict()) {
    const Value* const found = dict->find(index);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  const auto place = index.integer_value();
  if (!place) return std::nullopt;
  const auto in_range = [&](size_t size) -> std::optional<size_t> {
    const auto count = static_cast<int64_t>(size);
    if (*place >= count || *place < -count) return std::nullopt;
    return static_cast<size_t>(*place < 0 ? *place + count : *place);
  };
  if (const List* const list = value.as_list()) {
    const auto found = in_range(list->elements().size());
    return found ? std::optional(list->elements()[*found]) : std::nullopt;
  }
  if (const Text* const text = value.as_text()) {
    const std::vector<size_t> offsets = counted_offsets(*text, runtime);
    const auto found = in_range(offsets.size() - 1);
    return found ? std::optional(character_of(*text, offsets, *found)) : std::nullopt;
  }
  return std::nullopt;
}

Value slice_of(const Value& value, const Value& start, const Value& stop, const Value& step,
               Runtime& runtime) {
  if (const List* const list = value.as_list()) {
    std::vector<Value> elements;
    const auto size = static_cast<int64_t>(list->elements().size());
    for (const size_t i : slice_indexes(start, stop, step, size, runtime)) {
      elements.push_back(list->elements()[i]);
    }
    return runtime.make(std::move(elements), list->form());
  }
  if (const Text* const text = value.as_text()) {
    const std::vector<size_t> offsets = counted_offsets(*text, runtime);
    Text result;
    if (text->is_markup()) result.set_markup();
    const auto size = static_cast<int64_t>(offsets.size() - 1);
    for (const size_t i : slice_indexes(start, stop, step, size, runtime)) {
      result.append(*text, offsets[i], offsets[i + 1]);
    }
    return runtime.make(std::move(result));
  }
  if (value.is_undefined())
    throw runtime.error(concat("'", *value.as_undefined()->name, "' is undefined"));
  throw runtime.error(concat(value.kind(), " has no slices"));
}

}  // namespace tessera::jinja
