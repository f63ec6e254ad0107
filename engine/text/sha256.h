// SHA-256 (FIPS 180-4), to recognise a text. Not for secrets.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// The digest of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace tessera
