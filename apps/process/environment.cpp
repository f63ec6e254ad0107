#include "apps/process/environment.h"

namespace tessera {
namespace {

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// The "$NAME" or "${NAME}" that `text` begins with; empty when it begins with none.
std::string_view leading_variable(std::string_view text) {
  if (text.starts_with("${")) return text.substr(0, text.find('}') + 1);
  if (!text.starts_with('$')) return {};
  return text.substr(0, text.find_first_not_of(kNameCharacters, 1));
}

}  // namespace

std::string with_home(std::string_view path) {
  const std::string_view home = environment("HOME");
  if (home.empty() || (path != "~" && !path.starts_with("~/"))) return std::string(path);
  return std::string(home).append(path.substr(1));
}

std::string with_variables(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::string_view variable = leading_variable(text);
    std::string name(variable.substr(variable.empty() ? 0 : 1));
    if (name.starts_with('{')) name = name.substr(1, name.size() - 2);
    const char* const value = std::getenv(name.c_str());
    const std::string_view read = value == nullptr ? text.substr(0, 1) : variable;
    result += value == nullptr ? read : std::string_view(value);
    text.remove_prefix(read.size());
  }
  return result;
}

}  // namespace tessera
