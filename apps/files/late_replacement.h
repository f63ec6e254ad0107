// A file that keeps its content until there is something to put in its place.
#pragma once

#include <string>
#include <string_view>

#include "engine/input_files.h"

namespace tessera {

// The first write replaces what the file held, those after it go on behind it: a run that ends
// before it has something to say costs nobody what an earlier one wrote. What is no regular file, a
// device or a pipe, is written as it is, a terminal without control characters; so is the file that
// standard output or standard error goes to, where replacing would separate the two.
class LateReplacement {
 public:
  // Finds now whether `path` can be written. "-" is standard output. Throws Error naming `path`, as
  // write() does, and Interrupted while nobody reads a named pipe.
  explicit LateReplacement(const std::string& path);

  void write(std::string_view text);

 private:
  std::string path_;
  FileDescriptor file_;  // open from the beginning where there is nothing to replace
};

}  // namespace tessera
