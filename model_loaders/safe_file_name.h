// The one gate for file names that come from a model file or a model's name.
#pragma once

#include <string_view>

namespace tessera {

// True for a plain name of one file: letters, digits, '.', '_' and '-', not starting with '.' or
// '-', at most 255 bytes. Such a name cannot leave the folder it is appended to.
bool is_safe_file_name(std::string_view name);

// True for names joined by '/', each of which is safe: "refs/pr/1".
bool is_safe_relative_path(std::string_view path);

}  // namespace tessera
