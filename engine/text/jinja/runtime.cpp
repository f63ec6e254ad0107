#include "engine/text/jinja/runtime.h"

namespace tessera::jinja {
namespace {

constexpr uint64_t kSteps = 1'000'000;
constexpr uint64_t kStepsPerInputByte = 50;
constexpr uint64_t kStepsBetweenPauses = uint64_t{1} << 14;
constexpr uint64_t kTextBytes = uint64_t{4} << 20;
constexpr uint64_t kTextBytesPerInputByte = 8;
constexpr uint64_t kBytes = uint64_t{96} << 20;
constexpr uint64_t kBytesPerInputByte = 256;
constexpr uint64_t kBytesPerStep = 64;
// Of a text without its bytes and of a value in a list or dict.
constexpr uint64_t kTextOverheadBytes = 96;
constexpr uint64_t kElementBytes = 64;

}  // namespace

Runtime::Runtime(uint64_t input_bytes, const Pause& pause)
    : pause_(pause),
      steps_left_(kSteps + kStepsPerInputByte * input_bytes),
      bytes_left_(kBytes + kBytesPerInputByte * input_bytes),
      max_text_bytes_(kTextBytes + kTextBytesPerInputByte * input_bytes) {}

void Runtime::count_steps(uint64_t steps) {
  if (steps > steps_left_) throw error("the template takes too many steps");
  steps_left_ -= steps;
  steps_since_pause_ += steps;
  if (steps_since_pause_ < kStepsBetweenPauses) return;
  steps_since_pause_ = 0;
  if (pause_) pause_();
}

void Runtime::count_bytes(uint64_t bytes) {
  if (bytes > bytes_left_) throw error("the template takes too much memory");
  bytes_left_ -= bytes;
}

void Runtime::check_text_size(uint64_t bytes) const {
  if (bytes > max_text_bytes_) {
    throw error(concat("the template makes a text of more than ", max_text_bytes_, " bytes"));
  }
}

void Runtime::count_text(uint64_t bytes) {
  check_text_size(bytes);
  count_bytes(bytes + kTextOverheadBytes);
  count_steps(bytes / kBytesPerStep);
}

void Runtime::count_elements(uint64_t elements) {
  count_steps(elements);
  count_bytes(elements * kElementBytes + kElementBytes);
}

Value Runtime::make(Text text) {
  count_text(text.size());
  count_bytes(text.runs().size() * sizeof(Text::Run));
  return Value(std::move(text));
}

Value Runtime::make(std::vector<Value> elements, List::Form form) {
  count_elements(elements.size());
  return Value(List(std::move(elements), form));
}

Value Runtime::make_iterable(Iterable::Kind kind, std::vector<Value> elements) {
  count_elements(elements.size());
  return Value(Iterable(kind, std::move(elements)));
}

Value Runtime::make(Dict dict) {
  count_elements(3 * dict.entries().size());
  return Value(std::move(dict));
}

Error Call::error(const std::string& message) const {
  return runtime.error(concat(name, ": ", message));
}

const Text& Call::text(const Value& value) const {
  if (value.as_text() == nullptr) throw error(concat("needs a string, got ", value.kind()));
  return *value.as_text();
}

const Text& Call::text() const { return text(subject()); }

int64_t Call::integer(const Value& value) const {
  const auto integer = value.integer_value();
  if (!integer) throw error(concat("needs an integer, got ", value.kind()));
  return *integer;
}

std::vector<const Value*> Call::bind(std::vector<std::string_view> names, size_t first) const {
  std::vector<const Value*> bound(names.size(), nullptr);
  if (arguments.size() > first + names.size()) throw error("has too many arguments");
  for (size_t i = first; i < arguments.size(); ++i) bound[i - first] = &arguments[i];
  for (const auto& [key, value] : named) {
    size_t place = 0;
    while (place < names.size() && names[place] != key) ++place;
    if (place == names.size()) throw error(concat("has no argument '", key, "'"));
    if (bound[place] != nullptr) throw error(concat("has two values for '", key, "'"));
    bound[place] = &value;
  }
  return bound;
}

std::vector<const Value*> Call::bind_required(std::vector<std::string_view> names,
                                              size_t num_required, size_t first) const {
  const std::vector<const Value*> bound = bind(names, first);
  for (size_t i = 0; i < num_required; ++i) {
    if (bound[i] == nullptr) throw error(concat("needs an argument '", names[i], "'"));
  }
  return bound;
}

}  // namespace tessera::jinja
