// What tells the contents of KV pages apart.
#pragma once

#include <cstdint>

namespace tessera {

// Pages of the same name hold the keys and values of the same tokens, behind the same tokens.
using PageName = uint64_t;

// Stands before a sequence's first page.
inline constexpr PageName kNoPage = 0;

}  // namespace tessera
