#include "apps/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "apps/output.h"
#include "engine/engine.h"

namespace tessera {
namespace {

void sync_directory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int directory = open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY);
  if (directory < 0) return;  // the rename itself has worked
  fsync(directory);
  close(directory);
}

}  // namespace

void replace_file(const std::string& path, std::string_view content) {
  const std::string temporary = concat(path, ".tmp.", getpid());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  CHECK(file >= 0, path, ": ", std::strerror(errno));
  try {
    write_all(file, content, path);
    CHECK(fsync(file) == 0, path, ": ", std::strerror(errno));
    CHECK(std::rename(temporary.c_str(), path.c_str()) == 0, path, ": ", std::strerror(errno));
  } catch (...) {
    close(file);
    unlink(temporary.c_str());
    throw;
  }
  close(file);
  sync_directory(path);
}

}  // namespace tessera
