#include "apps/terminal/human_units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace tessera {

std::string fixed(double value, int digits) {
  std::array<char, 400> text;
  const int length = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return std::string(text.data(), static_cast<size_t>(length));
}

std::string human_bytes(uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fixed(value, 1) + " " + kUnits[unit];
}

std::string human_count(int64_t count) {
  const auto value = static_cast<double>(count);
  if (count < 10'000) return std::to_string(count);
  if (value < 1e6) return fixed(value / 1e3, 1) + " K";
  if (value < 1e9) return fixed(value / 1e6, 1) + " M";
  return fixed(value / 1e9, 2) + " B";
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  std::array<char, 64> text;
  if (whole >= 3600) {
    std::snprintf(text.data(), text.size(), "%lld h %02lld min",
                  static_cast<long long>(whole / 3600), static_cast<long long>(whole / 60 % 60));
  } else if (whole >= 60) {
    std::snprintf(text.data(), text.size(), "%lld min %02lld s", static_cast<long long>(whole / 60),
                  static_cast<long long>(whole % 60));
  } else {
    std::snprintf(text.data(), text.size(), "%lld s", static_cast<long long>(whole));
  }
  return text.data();
}

}  // namespace tessera
