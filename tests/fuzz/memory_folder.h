// A folder in which one file lives in memory, for readers that take a path: replacing its bytes
// costs a few microseconds and wears no disk.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/tensor/check.h"
#include "tests/model_loaders/temporary_folder.h"

namespace tessera {

class MemoryFolder {
 public:
  // `name` is a link to the file, which any number of readers may open.
  explicit MemoryFolder(std::string_view name)
      : descriptor_(memfd_create("tessera_fuzz", MFD_CLOEXEC)), path_(folder_.path(name)) {
    if (descriptor_ < 0) throw std::runtime_error("memfd_create failed");
    std::filesystem::create_symlink(concat("/proc/self/fd/", descriptor_), path_);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  ~MemoryFolder() { close(descriptor_); }

  // Makes `bytes` all that the file holds.
  void replace(std::string_view bytes) const {
    if (ftruncate(descriptor_, static_cast<off_t>(bytes.size())) != 0 ||
        pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("cannot write a file in memory");
    }
  }

  const std::string& path() const { return path_; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
  int descriptor_;
  std::string path_;
};

}  // namespace tessera
