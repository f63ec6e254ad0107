// Files that somebody deletes or moves while they are being written.
#pragma once

#include <string>

namespace tessera {

// Whether `path` still leads to the open file.
bool is_in_place(int descriptor, const std::string& path);

// Where the content of an open file is that is not in place: where it was moved to, or, when it has
// no name left and would vanish with the descriptor, a copy beside `path`, made now. Throws Error
// when that cannot be written.
std::string place_of_displaced(int descriptor, const std::string& path);

}  // namespace tessera
