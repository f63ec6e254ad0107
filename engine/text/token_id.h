// The word for a token that text and model share.
#pragma once

#include <cstdint>

namespace tessera {

// The index of a token in the vocabulary.
using TokenId = int32_t;

}  // namespace tessera
