#include "model_loaders/number_limits.h"

#include <array>
#include <charconv>

namespace tessera {

std::string exact_text(double number) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return std::string(text.data(), end);
}

}  // namespace tessera
