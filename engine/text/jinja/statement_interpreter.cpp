#include <utility>

#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/level.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/printing.h"

namespace tessera::jinja {
namespace {

constexpr int kMaxMacroCalls = 50;

}  // namespace

Interpreter::Interpreter(const Dict& variables, uint64_t input_bytes, const Pause& pause)
    : runtime_(input_bytes, pause) {
  for (const auto& [name, value] : variables.entries()) {
    if (name.as_text() != nullptr) root_.values[name.as_text()->bytes()] = value;
  }
}

Text Interpreter::run(const Statements& statements) {
  Text text;
  output_ = &text;
  try {
    execute(statements);
  } catch (const ElementError& error) {
    throw runtime_.error(error.what());
  }
  return text;
}

void Interpreter::print(const Text& text) {
  runtime_.check_text_size(output_->size() + text.size());
  runtime_.count_text(text.size());
  output_->append(text);
}

Interpreter::Flow Interpreter::execute(const Statements& statements) {
  for (const Statement& statement : statements) {
    if (const Flow flow = execute(statement); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  const Level level(*this, statement.position);
  switch (statement.kind) {
    case Statement::Kind::kText:
      print(*statement.text.as_text());
      break;
    case Statement::Kind::kOutput:
      print(printed(evaluate(*statement.expression), runtime_));
      break;
    case Statement::Kind::kIf:
      return execute_if(statement);
    case Statement::Kind::kFor:
      return execute_for(statement);
    case Statement::Kind::kSet:
      assign(statement.target, evaluate(*statement.expression));
      break;
    case Statement::Kind::kSetBlock:
      execute_set_block(statement);
      break;
    case Statement::Kind::kMacro:
      define_macro(statement);
      break;
    case Statement::Kind::kCallBlock:
      execute_call_block(statement);
      break;
    case Statement::Kind::kFilterBlock:
      print(printed(filtered(*statement.expression, captured(statement.body)), runtime_));
      break;
    case Statement::Kind::kGeneration: {
      Scope scope{.parent = scope_};
      const ScopeGuard guard(*this, &scope);
      execute(statement.body);
      break;
    }
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement) {
  const bool holds = evaluate(*statement.expression).is_true();
  return execute(holds ? statement.body : statement.otherwise);
}

// Those that the loop keeps: `loop` counts no others.
std::vector<Value> Interpreter::loop_elements(const Statement& statement, const Value& iterated) {
  std::vector<Value> elements = elements_of(iterated, runtime_);
  if (statement.condition == nullptr) return elements;
  std::vector<Value> kept;
  for (Value& element : elements) {
    Scope scope{.parent = scope_};
    const ScopeGuard guard(*this, &scope);
    assign(statement.target, element);
    if (evaluate(*statement.condition).is_true()) kept.push_back(std::move(element));
  }
  return kept;
}

Interpreter::Flow Interpreter::execute_for(const Statement& statement) {
  const Value iterated = evaluate(*statement.expression);
  const auto loop = std::make_shared<LoopState>(loop_elements(statement, iterated));
  Iterable* const iterable = iterated.as_iterable();
  // While the loop runs, and after a break, Python has not seen every element.
  if (iterable != nullptr) iterable->is_open = iterable->is_iterator();
  Flow flow = Flow::kNext;
  bool has_finished = false;  // any round, up to the end of its body
  const size_t size = loop->elements.size();
  for (size_t i = 0; i < size && flow != Flow::kBreak; ++i) {
    runtime_.count_steps(1);
    loop->index = i;
    Scope scope{.parent = scope_};
    scope.values["loop"] = Value(loop);
    const ScopeGuard guard(*this, &scope);
    assign(statement.target, loop->elements[i]);
    flow = execute(statement.body);
    if (flow == Flow::kNext) has_finished = true;
  }
  if (iterable != nullptr && flow != Flow::kBreak) iterable->is_open = false;
  // As Jinja has it: also when every round ended in a break or continue.
  if (has_finished) return Flow::kNext;
  Scope scope{.parent = scope_};
  const ScopeGuard guard(*this, &scope);
  return execute(statement.otherwise);
}

Value Interpreter::captured(const Statements& statements) {
  Text text;
  Text* const outer = std::exchange(output_, &text);
  Scope scope{.parent = scope_};
  const ScopeGuard guard(*this, &scope);
  execute(statements);
  output_ = outer;
  return Value(std::move(text));
}

void Interpreter::execute_set_block(const Statement& statement) {
  Value text = captured(statement.body);
  if (statement.expression != nullptr) text = filtered(*statement.expression, text);
  assign(statement.target, text);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.attribute.empty()) return assign_attribute(target, value);
  if (target.elements.empty()) {
    scope_->values[target.name] = value;
    return;
  }
  const std::vector<Value> elements = elements_of(value, runtime_);
  if (elements.size() != target.elements.size()) {
    throw runtime_.error(concat("cannot assign ", counted(elements.size(), "value"), " to ",
                                counted(target.elements.size(), "name")));
  }
  for (size_t i = 0; i < elements.size(); ++i) assign(target.elements[i], elements[i]);
}

void Interpreter::assign_attribute(const Target& target, const Value& value) {
  const Value* const found = scope_->find(target.name);
  Namespace* const changed = found == nullptr ? nullptr : found->as_namespace();
  if (changed == nullptr) {
    throw runtime_.error(concat("'", target.name, "' is no namespace"));
  }
  check_element(value);
  runtime_.count_elements(1);
  changed->values[target.attribute] = value;
}

void Interpreter::define_macro(const Statement& statement) {
  const Callable macro{.name = statement.name, .macro = &statement, .scope = scope_};
  scope_->values[statement.name] = Value(macro);
}

void Interpreter::bind_parameters(const Statement& macro, const Call& call, Scope& scope) {
  std::vector<std::string_view> names;
  for (const Parameter& parameter : macro.parameters) names.push_back(parameter.name);
  const std::vector<const Value*> bound = call.bind(names, 0);
  for (size_t i = 0; i < names.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    scope.values[parameter.name] =
        bound[i] != nullptr ? *bound[i] : Value::undefined(parameter.name);
  }
  // A default sees all arguments, and of the other parameters the defaults before it.
  for (size_t i = 0; i < names.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    if (bound[i] != nullptr || parameter.default_value == nullptr) continue;
    scope.values[parameter.name] = evaluate(*parameter.default_value);
  }
}

Value Interpreter::call_macro(const Callable& macro, Call& call) {
  if (macros_ == kMaxMacroCalls) throw runtime_.error("macros call each other too deeply");
  ++macros_;
  Scope scope{.parent = static_cast<Scope*>(macro.scope)};
  const ScopeGuard guard(*this, &scope);
  if (!call.named.empty() && call.named.back().first == "caller") {
    scope.values["caller"] = call.named.back().second;
    call.named.pop_back();
  }
  bind_parameters(*macro.macro, call, scope);
  Value text = captured(macro.macro->body);
  --macros_;
  return text;
}

void Interpreter::execute_call_block(const Statement& statement) {
  const Value caller(Callable{.name = "caller", .macro = &statement, .scope = scope_});
  print(printed(evaluate_call(*statement.expression, &caller), runtime_));
}

}  // namespace tessera::jinja
