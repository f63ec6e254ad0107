// Whether this is a build with sanitizers, which check every access. There some tests that compute
// for long do less, and limits of memory and time are not checked: the build without sanitizers
// does both in full.
#pragma once

namespace tessera {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace tessera
