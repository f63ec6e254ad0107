// The alphabet of byte-level vocabularies, which writes each byte as one visible character: "Ġthe"
// is " the".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// The bytes that `piece`, which is UTF-8, stands for; nothing when it has a character that no byte
// is written as.
std::optional<std::string> bytes_of_byte_level(std::string_view piece);

// The other way: how the bytes are written.
std::string byte_level_of(std::string_view bytes);

}  // namespace tessera
