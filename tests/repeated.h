#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

inline std::string repeated(std::string_view text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

}  // namespace tessera
