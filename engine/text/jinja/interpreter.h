// Running a parsed template.
#pragma once

#include <optional>

#include "engine/text/jinja/runtime.h"
#include "engine/text/jinja/scope.h"
#include "engine/text/jinja/syntax.h"

namespace tessera::jinja {

class Interpreter {
 public:
  // `input_bytes`: of the variables, for the limits. `pause` as in Runtime.
  Interpreter(const Dict& variables, uint64_t input_bytes, const Pause& pause);

  // What the statements print. Throws Error with line and column.
  Text run(const Statements& statements);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  class Level;       // counts open calls
  class ScopeGuard;  // a scope within the present one, for a while

  // statements (statement_interpreter.cpp)
  Flow execute(const Statements& statements);
  Flow execute(const Statement& statement);
  Flow execute_if(const Statement& statement);
  Flow execute_for(const Statement& statement);
  std::vector<Value> loop_elements(const Statement& statement, const Value& iterated);
  void execute_set_block(const Statement& statement);
  void execute_call_block(const Statement& statement);
  void assign(const Target& target, const Value& value);
  void assign_attribute(const Target& target, const Value& value);
  void define_macro(const Statement& statement);
  Value captured(const Statements& statements);
  void print(const Text& text);
  Value call_macro(const Callable& macro, Call& call);
  void bind_parameters(const Statement& macro, const Call& call, Scope& scope);

  // expressions (expression_interpreter.cpp)
  Value evaluate(const Expression& expression);
  Value evaluate_name(const Expression& expression);
  Value evaluate_list(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_attribute(const Expression& expression);
  Value evaluate_item(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_comparison(const Expression& expression);
  Value evaluate_concatenation(const Expression& expression);
  Value evaluate_conditional(const Expression& expression);
  Value evaluate_call(const Expression& expression, const Value* caller);
  Value evaluate_filter(const Expression& expression);
  // The filters of a block, applied to its text.
  Value filtered(const Expression& expression, const Value& text);
  Value evaluate_test(const Expression& expression);
  Call make_call(const Expression& expression, std::vector<Value> leading);
  Value attribute_of(const Value& value, const std::string& name, const Expression& expression);
  Value loop_attribute(const LoopState& loop, const std::string& name);

  Runtime runtime_;
  Scope root_;
  Scope* scope_ = &root_;
  Text* output_ = nullptr;
  int level_ = 0;
  int macros_ = 0;                     // open calls
  const Value* block_text_ = nullptr;  // of the filter block that is evaluated
};

}  // namespace tessera::jinja
