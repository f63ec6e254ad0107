#include "model_loaders/printable.h"

namespace tessera {
namespace {

constexpr size_t kMaxBytes = 120;
constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for (const char character : text.substr(0, kMaxBytes)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f) {
      result += character;
    } else {
      result += "\\x";
      result += kHexDigits[byte >> 4];
      result += kHexDigits[byte & 15];
    }
  }
  if (text.size() > kMaxBytes) result += "...";
  return result;
}

}  // namespace tessera
