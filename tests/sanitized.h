// Whether this is a build with sanitizers, which check every access. Tests that compute for long
// do less of the same there: the full measure is taken by the build without them.
#pragma once

namespace tessera {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace tessera
