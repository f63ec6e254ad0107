// The environment, which only apps may ask.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace tessera {

// The value of a variable; empty also when it is not set. Valid until the variable changes.
inline std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// The path with the home folder in place of the "~" of "~" and "~/...".
std::string with_home(std::string_view path);

// The text with the values of variables in place of "$NAME" and "${NAME}". What names no variable
// that is set stays.
std::string with_variables(std::string_view text);

}  // namespace tessera
