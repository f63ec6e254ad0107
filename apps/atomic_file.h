// Files that are replaced as a whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// Writes `content` beside `path`, makes it durable and renames it over `path`. Throws Error naming
// `path`; the old file is then untouched.
void replace_file(const std::string& path, std::string_view content);

}  // namespace tessera
