#include "model_loaders/safe_file_name.h"

#include <algorithm>

namespace tessera {
namespace {

// std::isalnum depends on the locale.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

bool is_safe_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, is_plain);
}

bool is_safe_relative_path(std::string_view path) {
  while (true) {
    const size_t slash = path.find('/');
    if (!is_safe_file_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace tessera
