// What runs of a template may use up, and how they fail.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/iterable.h"
#include "engine/text/jinja/source_position.h"
#include "engine/text/jinja/value.h"
#include "model_loaders/pause.h"

namespace tessera::jinja {

// Limits that no honest template meets and every hostile one does. A step is an expression or
// statement, or 64 bytes of text looked at; bytes are all that a run ever makes, also what it drops
// again.
class Runtime {
 public:
  // `input_bytes`: of the variables that the template is given. `pause`, if any, outlives the
  // object and is called every few milliseconds of work.
  Runtime(uint64_t input_bytes, const Pause& pause);

  void count_steps(uint64_t steps);
  void count_bytes(uint64_t bytes);
  void check_text_size(uint64_t bytes) const;
  // Work on and memory for a text of that size, before it is made.
  void count_text(uint64_t bytes);
  void count_elements(uint64_t elements);

  Value make(Text text);
  Value make(std::vector<Value> elements, List::Form form = List::Form::kList);
  Value make_iterable(Iterable::Kind kind, std::vector<Value> elements);
  Value make(Dict dict);

  // An error at the expression that runs now.
  Error error(const std::string& message) const { return error_at(position, message); }

  SourcePosition position;

 private:
  const Pause& pause_;
  uint64_t steps_since_pause_ = 0;
  uint64_t steps_left_;
  uint64_t bytes_left_;
  uint64_t max_text_bytes_;
};

// A call of a filter, test, method or function, whose subject is the first argument.
struct Call {
  Runtime& runtime;
  std::string_view name;
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> named;

  // The subject as text; throws Error when it is none.
  const Text& text() const;
  const Value& subject() const { return arguments.front(); }
  // The arguments from `first` on by position or name, nullptr where absent. Throws Error when
  // there are others.
  std::vector<const Value*> bind(std::vector<std::string_view> names, size_t first = 1) const;
  // The same where fewer than `num_required` are an error too.
  std::vector<const Value*> bind_required(std::vector<std::string_view> names, size_t num_required,
                                          size_t first = 1) const;
  Error error(const std::string& message) const;
  const Text& text(const Value& value) const;
  int64_t integer(const Value& value) const;
};

using Function = Value (*)(Call& call);

}  // namespace tessera::jinja
