#include "apps/files/displaced_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "apps/terminal/output.h"
#include "engine/engine.h"
#include "engine/input_files.h"

namespace tessera {
namespace {

// The kernel's own link to the open file, which also leads to one without a name.
std::string link_to(int descriptor) { return concat("/proc/self/fd/", descriptor); }

bool is_nameless(int descriptor) {
  struct stat status = {};
  return fstat(descriptor, &status) == 0 && status.st_nlink == 0;
}

std::string name_of(int descriptor) {
  std::array<char, PATH_MAX> name;
  const ssize_t size = readlink(link_to(descriptor).c_str(), name.data(), name.size());
  return size > 0 ? std::string(name.data(), static_cast<size_t>(size)) : "the file it was";
}

// PATH.rescued, or with a number behind it where that exists.
FileDescriptor create_beside(const std::string& path, std::string& created) {
  for (int attempt = 0;; ++attempt) {
    created = path + ".rescued" + (attempt == 0 ? "" : concat('.', attempt));
    FileDescriptor file(open(created.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.value() >= 0) return file;
    CHECK(errno == EEXIST, created, ": ", std::strerror(errno));
  }
}

void copy_all(int source, int target, const std::string& name) {
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t count = read(source, block.data(), block.size());
    if (count == 0) return;
    if (count < 0 && errno == EINTR) continue;
    CHECK(count > 0, name, ": read failed: ", std::strerror(errno));
    write_all(target, {block.data(), static_cast<size_t>(count)}, name);
  }
}

std::string rescue(int descriptor, const std::string& path) {
  // The descriptor itself may be for writing only.
  const FileDescriptor source(open(link_to(descriptor).c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(source.value() >= 0, path,
        ": was deleted, and cannot be read any more: ", std::strerror(errno));
  std::string name;
  const FileDescriptor copy = create_beside(path, name);
  copy_all(source.value(), copy.value(), name);
  CHECK(fsync(copy.value()) == 0, name, ": write failed: ", std::strerror(errno));
  return name;
}

}  // namespace

bool is_in_place(int descriptor, const std::string& path) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_nlink > 0 && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

std::string place_of_displaced(int descriptor, const std::string& path) {
  return is_nameless(descriptor) ? rescue(descriptor, path) : name_of(descriptor);
}

}  // namespace tessera
