#pragma once

namespace tessera {

// A sliding window that no context is longer than.
inline constexpr int kNoWindow = 1 << 30;

}  // namespace tessera
