// Functions that call themselves for what is nested, within the limits of the stack.
#pragma once

#include <exception>

#include "engine/text/jinja/interpreter.h"

namespace tessera::jinja {

class Interpreter::Level {
 public:
  Level(Interpreter& interpreter, SourcePosition position)
      : interpreter_(interpreter), outer_(interpreter.runtime_.position) {
    constexpr int kMaxLevels = 1000;
    interpreter.runtime_.position = position;
    interpreter.runtime_.count_steps(1);
    if (interpreter.level_ == kMaxLevels) {
      throw interpreter.runtime_.error("the template is nested too deeply");
    }
    ++interpreter.level_;
  }
  ~Level() {
    --interpreter_.level_;
    // What is thrown without a place has that of the innermost expression: Interpreter::run.
    if (std::uncaught_exceptions() == 0) interpreter_.runtime_.position = outer_;
  }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Interpreter& interpreter_;
  SourcePosition outer_;
};

class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope* scope)
      : interpreter_(interpreter), outer_(interpreter.scope_) {
    interpreter.scope_ = scope;
  }
  ~ScopeGuard() { interpreter_.scope_ = outer_; }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  Scope* outer_;
};

}  // namespace tessera::jinja
