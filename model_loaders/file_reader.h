// Reading files that may lie, shrink or not be files at all.
//
// Files are read with pread and never mapped: a mapped file that shrinks kills the process with
// SIGBUS, a short read is an Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

// Owns an open file descriptor. Move only.
class FileDescriptor {
 public:
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  int value() const { return value_; }  // negative: none

 private:
  int value_;
};

// An open regular file. Move only.
class FileReader {
 public:
  // Throws Error with the reason: missing, broken symlink, not a regular file, no permission.
  explicit FileReader(const std::string& path);

  const std::string& path() const { return path_; }

  // As it was when the file was opened.
  uint64_t size_bytes() const { return size_bytes_; }

  // Fills `destination` with bytes [offset_bytes, offset_bytes + size_bytes). Thread-safe. Throws
  // "file changed during load" when they are not there any more.
  void read(void* destination, uint64_t offset_bytes, uint64_t size_bytes) const;

 private:
  std::string path_;
  FileDescriptor descriptor_;
  uint64_t size_bytes_ = 0;
};

// The whole file; throws when it has more than `max_bytes`.
std::string read_whole_file(const std::string& path, uint64_t max_bytes);

// True when there is a directory entry of that name, be it a broken symlink: opening it then gives
// the reason, whereas treating it as absent would look elsewhere. Throws Error where that cannot be
// told, for example in a folder without permission.
bool file_exists(const std::string& path);

// `folder`/`name`.
std::string join_path(std::string_view folder, std::string_view name);

}  // namespace tessera
