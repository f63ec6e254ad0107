// Input that can be read only once, made into a file that can be read again.
#pragma once

#include <string>

#include "engine/input_files.h"

namespace tessera {

// Opens `path` for reading; "-" is standard input. What is no regular file is first read to its end
// into a temporary one, in TMPDIR or /tmp, that has no name and goes with the descriptor. Throws
// Error with the reason (missing, a directory, unreadable, no room), Interrupted on Ctrl-C.
FileDescriptor open_seekable(const std::string& path);

}  // namespace tessera
