// Tokens or bytes that follow one another.
#pragma once

#include <cstdint>
#include <string>

#include "engine/engine.h"

namespace tessera {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;  // behind the last

  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;

  // For people, who count the last one in: "100 to 299".
  std::string text() const { return concat(begin, " to ", end - 1); }
};

}  // namespace tessera
