// Names and their values while a template runs.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/text/jinja/value.h"

namespace tessera::jinja {

// Where a loop stands: the value of the name `loop`, for `loop.index` and its like.
struct LoopState {
  std::vector<Value> elements;
  size_t index = 0;
};

// The names of a template, of one round of a loop, or of a call of a macro; others are looked up in
// the scope around it.
struct Scope {
  Scope* parent = nullptr;
  std::unordered_map<std::string, Value> values;

  const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
      const auto found = scope->values.find(name);
      if (found != scope->values.end()) return &found->second;
    }
    return nullptr;
  }
};

}  // namespace tessera::jinja
