#include "apps/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "apps/terminal/output.h"
#include "engine/engine.h"

namespace tessera {
namespace {

// Where writing to `path` would write, also if nothing is there yet.
std::string without_links(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as the kernel has it
  std::filesystem::path target = path;
  std::error_code problem;
  for (int i = 0; i < kMaxLinks && std::filesystem::is_symlink(target, problem); ++i) {
    target = target.parent_path() / std::filesystem::read_symlink(target, problem);
  }
  return target.string();
}

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Without a name where the file system can: a process that is killed then leaves nothing behind.
int open_new(const std::string& temporary) {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC;
  const int nameless = open(folder_of(temporary).c_str(), kFlags | O_TMPFILE, 0666);
  if (nameless >= 0) return nameless;
  // The name holds this process's id: one that has it was left by another, which was killed.
  unlink(temporary.c_str());
  return open(temporary.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
}

// 0, as link() gives, or -1 and errno.
int name_if_nameless(int descriptor, const std::string& temporary) {
  struct stat status = {};
  if (fstat(descriptor, &status) == 0 && status.st_nlink > 0) return 0;
  unlink(temporary.c_str());
  const std::string link = concat("/proc/self/fd/", descriptor);
  return linkat(AT_FDCWD, link.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW);
}

void sync_directory(const std::string& path) {
  const FileDescriptor directory(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // The rename itself has worked: whether it outlasts a power failure is not worth an error.
  if (directory.value() >= 0) fsync(directory.value());
}

}  // namespace

FileReplacement::FileReplacement(const std::string& path)
    : path_(path), target_(without_links(path)), temporary_(concat(target_, ".tmp.", getpid())) {
  struct stat old = {};
  const bool exists = stat(target_.c_str(), &old) == 0;
  // Renaming over a device would take it away from everybody.
  CHECK(!exists || S_ISREG(old.st_mode), path_, ": is not a regular file");
  descriptor_ = FileDescriptor(open_new(temporary_));
  CHECK(descriptor_.value() >= 0, path_, ": ", std::strerror(errno));
  if (exists) fchmod(descriptor_.value(), old.st_mode & 07777);
}

FileReplacement::~FileReplacement() {
  if (descriptor_.value() >= 0) unlink(temporary_.c_str());
}

void FileReplacement::write(std::string_view content) {
  write_all(descriptor_.value(), content, path_);
}

FileDescriptor FileReplacement::commit() {
  CHECK(fsync(descriptor_.value()) == 0, path_, ": write failed: ", std::strerror(errno));
  CHECK(name_if_nameless(descriptor_.value(), temporary_) == 0 &&
            std::rename(temporary_.c_str(), target_.c_str()) == 0,
        path_, ": ", std::strerror(errno));
  sync_directory(target_);
  return std::move(descriptor_);
}

void replace_file(const std::string& path, std::string_view content) {
  FileReplacement replacement(path);
  replacement.write(content);
  replacement.commit();
}

}  // namespace tessera
