// Files that are replaced as a whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "engine/input_files.h"

namespace tessera {

// New content for the file `path`, which stays as it is until commit(). What is not committed is
// removed. A symbolic link stays one: the file it leads to is replaced.
class FileReplacement {
 public:
  // Throws Error naming `path`, as all of these do; also for what is no regular file.
  explicit FileReplacement(const std::string& path);
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  // Open for reading and for writing at the end.
  int descriptor() const { return descriptor_.value(); }

  void write(std::string_view content);

  // Makes the content durable and puts it in the place of the old file, whose mode it gets. The
  // descriptor is that of the file from here on.
  FileDescriptor commit();

 private:
  std::string path_;       // for messages
  std::string target_;     // what is replaced
  std::string temporary_;  // beside it
  FileDescriptor descriptor_{-1};
};

void replace_file(const std::string& path, std::string_view content);

}  // namespace tessera
