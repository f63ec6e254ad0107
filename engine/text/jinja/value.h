// What expressions of a template compute with: Python's values, as far as templates meet them.
//
// Lists and dicts never change once made, as in the sandbox of Hugging Face; only a namespace does,
// and what counts how far it was gone through: a loop and an iterator.
// No container holds what could hold itself, so that nothing is ever nested deeper than
// kMaxValueNesting and all memory is freed by counting references.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "engine/text/jinja/text.h"
#include "kernels/tensor/check.h"

namespace tessera::jinja {

class List;
class Dict;
struct Callable;
struct Iterable;
struct LoopState;
struct Namespace;

// A name without a value. It prints as "", is false, and everything else is an error with its name.
struct Undefined {
  std::shared_ptr<const std::string> name;
};

struct None {};

class Value {
 public:
  Value() : data_(None{}) {}
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(Text value) : data_(std::make_shared<const Text>(std::move(value))) {}
  explicit Value(List value);
  explicit Value(Dict value);
  explicit Value(Iterable value);
  explicit Value(std::shared_ptr<Namespace> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<LoopState> value) : data_(std::move(value)) {}
  explicit Value(Callable value);
  explicit Value(Undefined value) : data_(std::move(value)) {}

  // Text of a conversation, or of the template's makers.
  static Value data(std::string_view text) { return Value(Text(text, Origin::kData)); }
  static Value trusted(std::string_view text) { return Value(Text(text, Origin::kTemplate)); }
  static Value undefined(std::string_view name);

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  // nullptr when it is something else.
  const bool* as_bool() const { return std::get_if<bool>(&data_); }
  const int64_t* as_integer() const { return std::get_if<int64_t>(&data_); }
  const double* as_float() const { return std::get_if<double>(&data_); }
  const Text* as_text() const { return pointer<const Text>(); }
  const List* as_list() const { return pointer<const List>(); }
  const Dict* as_dict() const { return pointer<const Dict>(); }
  Iterable* as_iterable() const { return pointer<Iterable>(); }
  Namespace* as_namespace() const { return pointer<Namespace>(); }
  LoopState* as_loop() const { return pointer<LoopState>(); }
  const Callable* as_callable() const { return pointer<const Callable>(); }
  const Undefined* as_undefined() const { return std::get_if<Undefined>(&data_); }

  // Of integers and, as in Python, of booleans.
  std::optional<int64_t> integer_value() const;
  // Of integers, booleans and floats.
  std::optional<double> number() const;
  bool is_true() const;
  // "a string", "a list", ... for messages.
  std::string_view kind() const;
  // Lists in lists; 0 for what holds nothing.
  int nesting() const;

 private:
  template <typename T>
  T* pointer() const {
    const auto* const shared = std::get_if<std::shared_ptr<T>>(&data_);
    return shared == nullptr ? nullptr : shared->get();
  }

  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Iterable>,
               std::shared_ptr<Namespace>, std::shared_ptr<LoopState>,
               std::shared_ptr<const Callable>>
      data_;
};

inline constexpr int kMaxValueNesting = 100;

// Of what a container cannot hold, without the place in the template.
class ElementError : public Error {
 public:
  using Error::Error;
};

// Throws ElementError for namespaces, loops, what is called, and what would be nested deeper than
// kMaxValueNesting.
void check_element(const Value& element);

// A list or what has its items and slices too.
class List {
 public:
  enum class Form : uint8_t {
    kList,
    kTuple,
    kRange,  // of numbers, which has no text and no operators
  };

  List() = default;
  explicit List(std::vector<Value> elements, Form form = Form::kList);

  const std::vector<Value>& elements() const { return elements_; }
  Form form() const { return form_; }
  bool is_tuple() const { return form_ == Form::kTuple; }
  bool is_range() const { return form_ == Form::kRange; }
  int nesting() const { return nesting_; }

 private:
  std::vector<Value> elements_;
  Form form_ = Form::kList;
  int nesting_ = 1;
};

// Keys are text or integers, in the order of their insertion.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  // nullptr when there is none. A float finds the integer that it equals.
  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;
  // Replaces the value of a key that is there. A key is text or an integer.
  void set(const Text& key, Value value);
  void set(const Value& key, Value value);

  const std::vector<Entry>& entries() const { return entries_; }
  int nesting() const { return nesting_; }

 private:
  template <typename Places, typename Key>
  void store(Places& places, const Key& place_key, const Value& key, Value value);

  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> places_;  // in entries_, of keys that are text
  std::unordered_map<int64_t, size_t> integer_places_;
  int nesting_ = 1;
};

struct Namespace {
  std::unordered_map<std::string, Value> values;
};

struct Call;
struct Statement;

// A function of the environment, a method of `self`, or a macro.
struct Callable {
  std::string name;
  Value (*function)(Call& call) = nullptr;
  std::optional<Value> self;         // the first argument of a method
  const Statement* macro = nullptr;  // of the template, which outlives its run
  void* scope = nullptr;             // in which the macro is defined, and which outlives it
};

}  // namespace tessera::jinja
