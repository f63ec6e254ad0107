// The environment, which only apps may ask.
#pragma once

#include <cstdlib>
#include <string_view>

namespace tessera {

// The value of a variable; empty also when it is not set. Valid until the variable changes.
inline std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace tessera
