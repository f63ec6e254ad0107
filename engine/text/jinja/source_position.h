// Where in a template something stands, for messages.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/tensor/check.h"

namespace tessera::jinja {

// Both count from 1; columns are bytes.
struct SourcePosition {
  uint32_t line = 1;
  uint32_t column = 1;
};

inline Error error_at(SourcePosition position, const std::string& message) {
  return Error(
      concat("chat template, line ", position.line, ", column ", position.column, ": ", message));
}

}  // namespace tessera::jinja
