#include <utility>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/level.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/printing.h"

namespace tessera::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const Level level(*this, expression.position);
  const auto operand = [&](size_t i) { return evaluate(*expression.operands[i]); };
  switch (expression.kind) {
    case Expression::Kind::kConstant:
      return expression.constant;
    case Expression::Kind::kName:
      return evaluate_name(expression);
    case Expression::Kind::kList:
    case Expression::Kind::kTuple:
      return evaluate_list(expression);
    case Expression::Kind::kDict:
      return evaluate_dict(expression);
    case Expression::Kind::kAttribute:
      return evaluate_attribute(expression);
    case Expression::Kind::kItem:
      return evaluate_item(expression);
    case Expression::Kind::kSlice:
      return evaluate_slice(expression);
    case Expression::Kind::kCall:
      return evaluate_call(expression, nullptr);
    case Expression::Kind::kFilter:
      return evaluate_filter(expression);
    case Expression::Kind::kTest:
      return evaluate_test(expression);
    case Expression::Kind::kNot:
      return Value(!operand(0).is_true());
    case Expression::Kind::kNegate:
      return negated(operand(0), runtime_);
    case Expression::Kind::kPlus:
      return negated(negated(operand(0), runtime_), runtime_);
    case Expression::Kind::kBinary: {
      const Value left = operand(0);
      return apply_binary(expression.name, left, operand(1), runtime_);
    }
    case Expression::Kind::kCompare:
      return evaluate_comparison(expression);
    case Expression::Kind::kConcatenate:
      return evaluate_concatenation(expression);
    case Expression::Kind::kAnd: {
      Value left = operand(0);
      return left.is_true() ? operand(1) : left;
    }
    case Expression::Kind::kOr: {
      Value left = operand(0);
      return left.is_true() ? left : operand(1);
    }
    case Expression::Kind::kConditional:
      return evaluate_conditional(expression);
  }
  return Value();
}

Value Interpreter::evaluate_name(const Expression& expression) {
  if (const Value* const value = scope_->find(expression.name)) return *value;
  if (const Function function = find_function(expression.name)) {
    return Value(Callable{.name = expression.name, .function = function});
  }
  if (macros_ > 0 && (expression.name == "varargs" || expression.name == "kwargs")) {
    throw runtime_.error(concat(expression.name, " of macros are not supported"));
  }
  return Value::undefined(expression.name);
}

Value Interpreter::evaluate_list(const Expression& expression) {
  std::vector<Value> elements;
  for (const ExpressionPtr& operand : expression.operands) elements.push_back(evaluate(*operand));
  const bool is_tuple = expression.kind == Expression::Kind::kTuple;
  return runtime_.make(std::move(elements), is_tuple ? List::Form::kTuple : List::Form::kList);
}

Value Interpreter::evaluate_dict(const Expression& expression) {
  Dict dict;
  for (size_t i = 0; i < expression.operands.size(); i += 2) {
    const Value key = evaluate(*expression.operands[i]);
    if (key.as_text() == nullptr && key.as_integer() == nullptr) {
      throw runtime_.error(
          concat("a key of a dict must be a string or an integer, got ", key.kind()));
    }
    dict.set(key, evaluate(*expression.operands[i + 1]));
  }
  return runtime_.make(std::move(dict));
}

Value Interpreter::loop_attribute(const LoopState& loop, const std::string& name) {
  const auto integer = [](size_t value) { return Value(static_cast<int64_t>(value)); };
  const size_t length = loop.elements.size();
  if (name == "index") return integer(loop.index + 1);
  if (name == "index0") return integer(loop.index);
  if (name == "revindex") return integer(length - loop.index);
  if (name == "revindex0") return integer(length - loop.index - 1);
  if (name == "first") return Value(loop.index == 0);
  if (name == "last") return Value(loop.index + 1 == length);
  if (name == "length") return integer(length);
  if (name == "depth") return integer(1);  // counts recursive loops only
  if (name == "depth0") return integer(0);
  if (name == "previtem" && loop.index > 0) return loop.elements[loop.index - 1];
  if (name == "nextitem" && loop.index + 1 < length) return loop.elements[loop.index + 1];
  if (name == "cycle") {
    return Value(Callable{
        .name = name,
        .function =
            [](Call& call) {
              const auto count = static_cast<int64_t>(call.arguments.size()) - 1;
              if (count == 0) throw call.error("needs values");
              return call.arguments[static_cast<size_t>(1 + call.integer(call.subject()) % count)];
            },
        .self = integer(loop.index)});
  }
  return Value::undefined(name);
}

Value Interpreter::attribute_of(const Value& value, const std::string& name,
                                const Expression& expression) {
  if (const Undefined* const undefined = value.as_undefined()) {
    throw error_at(expression.position, concat("'", *undefined->name, "' is undefined"));
  }
  if (const LoopState* const loop = value.as_loop()) return loop_attribute(*loop, name);
  if (Namespace* const names = value.as_namespace()) {
    const auto found = names->values.find(name);
    return found == names->values.end() ? Value::undefined(name) : found->second;
  }
  if (const Function method = find_method(value, name)) {
    return Value(Callable{.name = name, .function = method, .self = value});
  }
  return Value::undefined(name);
}

Value Interpreter::evaluate_attribute(const Expression& expression) {
  const Value value = evaluate(*expression.operands[0]);
  Value attribute = attribute_of(value, expression.name, expression);
  const Dict* const dict = value.as_dict();
  if (!attribute.is_undefined() || dict == nullptr) return attribute;
  const Value* const found = dict->find(expression.name);
  return found == nullptr ? attribute : *found;
}

Value Interpreter::evaluate_item(const Expression& expression) {
  const Value value = evaluate(*expression.operands[0]);
  const Value index = evaluate(*expression.operands[1]);
  if (const auto item = item_of(value, index, runtime_)) return *item;
  const std::string name =
      index.as_text() != nullptr ? index.as_text()->bytes() : printed(index, runtime_).bytes();
  return attribute_of(value, name, expression);
}

Value Interpreter::evaluate_slice(const Expression& expression) {
  const auto part = [&](size_t i) {
    return expression.operands[i] == nullptr ? Value() : evaluate(*expression.operands[i]);
  };
  const Value value = part(0);
  const Value start = part(1);
  const Value stop = part(2);
  return slice_of(value, start, stop, part(3), runtime_);
}

// a < b < c compares neighbours, and evaluates no more than it needs.
Value Interpreter::evaluate_comparison(const Expression& expression) {
  Value left = evaluate(*expression.operands[0]);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.operands[i + 1]);
    if (!compare(expression.operators[i], left, right, runtime_)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::evaluate_concatenation(const Expression& expression) {
  Text text;
  for (const ExpressionPtr& operand : expression.operands) {
    const Text part = printed(evaluate(*operand), runtime_);
    runtime_.check_text_size(text.size() + part.size());
    text.append(part);
  }
  return runtime_.make(std::move(text));
}

Value Interpreter::evaluate_conditional(const Expression& expression) {
  if (evaluate(*expression.operands[1]).is_true()) return evaluate(*expression.operands[0]);
  if (expression.operands[2] == nullptr) return Value::undefined("value without else");
  return evaluate(*expression.operands[2]);
}

Call Interpreter::make_call(const Expression& expression, std::vector<Value> leading) {
  Call call{runtime_, expression.name, std::move(leading), {}};
  for (size_t i = 1; i < expression.operands.size(); ++i) {
    call.arguments.push_back(evaluate(*expression.operands[i]));
  }
  if (expression.splat != nullptr) {
    for (Value& value : elements_of(evaluate(*expression.splat), runtime_)) {
      call.arguments.push_back(std::move(value));
    }
  }
  for (const auto& [name, value] : expression.named) {
    call.named.emplace_back(name, evaluate(*value));
  }
  if (expression.named_splat != nullptr) {
    const Value named = evaluate(*expression.named_splat);
    if (named.as_dict() == nullptr) {
      throw runtime_.error(concat("** needs a dict, got ", named.kind()));
    }
    for (const auto& [name, value] : named.as_dict()->entries()) {
      if (name.as_text() == nullptr) {
        throw runtime_.error(concat("** needs names, got ", name.kind()));
      }
      call.named.emplace_back(name.as_text()->bytes(), value);
    }
  }
  return call;
}

Value Interpreter::evaluate_call(const Expression& expression, const Value* caller) {
  const Level level(*this, expression.position);
  const Value callee = evaluate(*expression.operands[0]);
  const Callable* const callable = callee.as_callable();
  if (callable == nullptr) {
    const Undefined* const undefined = callee.as_undefined();
    throw runtime_.error(undefined != nullptr
                             ? concat("there is no function or method '", *undefined->name, "'")
                             : concat("cannot call ", callee.kind()));
  }
  std::vector<Value> leading;
  if (callable->self) leading.push_back(*callable->self);
  Call call = make_call(expression, std::move(leading));
  call.name = callable->name;
  if (caller != nullptr) call.named.emplace_back("caller", *caller);
  return callable->macro != nullptr ? call_macro(*callable, call) : callable->function(call);
}

Value Interpreter::evaluate_filter(const Expression& expression) {
  const Expression* const subject = expression.operands[0].get();
  Value value = subject == nullptr ? *block_text_ : evaluate(*subject);
  const Function filter = find_filter(expression.name);
  if (filter == nullptr) throw runtime_.error(concat("there is no filter '", expression.name, "'"));
  Call call = make_call(expression, {std::move(value)});
  return filter(call);
}

Value Interpreter::filtered(const Expression& expression, const Value& text) {
  const Value* const outer = std::exchange(block_text_, &text);
  Value result = evaluate(expression);
  block_text_ = outer;
  return result;
}

Value Interpreter::evaluate_test(const Expression& expression) {
  const Function test = find_test(expression.name);
  if (test == nullptr) throw runtime_.error(concat("there is no test '", expression.name, "'"));
  Call call = make_call(expression, {evaluate(*expression.operands[0])});
  return test(call);
}

}  // namespace tessera::jinja
