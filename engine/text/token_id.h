// The word for a token that text and model share.
#pragma once

#include <cstdint>

namespace tessera {

// The index of a token in the vocabulary, and what stands for none.
using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

}  // namespace tessera
