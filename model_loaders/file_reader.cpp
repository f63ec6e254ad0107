#include "model_loaders/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

std::string system_message(int error_number) {
  return std::generic_category().message(error_number);
}

[[noreturn]] void throw_cannot_open(const std::string& path, int error_number) {
  std::error_code ignored;
  const std::filesystem::path target = std::filesystem::read_symlink(path, ignored);
  if (error_number == ENOENT && !target.empty()) {
    throw Error(concat(path, ": broken symlink to '", printable(target.string()), "'"),
                "download the model again");
  }
  throw Error(concat(path, ": cannot open: ", system_message(error_number)));
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (value_ >= 0) ::close(value_);
}

// O_NONBLOCK: opening a named pipe must not wait for a writer.
FileReader::FileReader(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_.value() < 0) throw_cannot_open(path, errno);
  struct stat status = {};
  CHECK(::fstat(descriptor_.value(), &status) == 0, path,
        ": cannot read its size: ", system_message(errno));
  CHECK(!S_ISDIR(status.st_mode), path, ": is a directory, expected a file");
  CHECK(S_ISREG(status.st_mode), path, ": is not a regular file");
  size_bytes_ = static_cast<uint64_t>(status.st_size);
}

void FileReader::read(void* destination, uint64_t offset_bytes, uint64_t size_bytes) const {
  CHECK(offset_bytes <= size_bytes_ && size_bytes <= size_bytes_ - offset_bytes, path_,
        ": cannot read ", counted(size_bytes, "byte"), " at ", offset_bytes, ", the file has ",
        size_bytes_);
  auto* cursor = static_cast<char*>(destination);
  while (size_bytes > 0) {
    // Linux transfers at most 2 GiB per call in any case.
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(size_bytes, uint64_t{1} << 30));
    const ssize_t got =
        ::pread(descriptor_.value(), cursor, wanted, static_cast<off_t>(offset_bytes));
    if (got < 0 && errno == EINTR) continue;
    CHECK(got >= 0, path_, ": read failed at byte ", offset_bytes, ": ", system_message(errno));
    CHECK(got > 0, path_, ": file changed during load: it had ", counted(size_bytes_, "byte"),
          ", now it ends at or before byte ", offset_bytes);
    cursor += got;
    offset_bytes += static_cast<uint64_t>(got);
    size_bytes -= static_cast<uint64_t>(got);
  }
}

std::string read_whole_file(const std::string& path, uint64_t max_bytes) {
  const FileReader file(path);
  CHECK(file.size_bytes() <= max_bytes, path, ": has ", counted(file.size_bytes(), "byte"),
        ", at most ", max_bytes, " are read");
  std::string text(static_cast<size_t>(file.size_bytes()), '\0');
  file.read(text.data(), 0, file.size_bytes());
  return text;
}

bool file_exists(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  CHECK(errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG, path, ": ",
        std::generic_category().message(errno));
  return false;
}

std::string join_path(std::string_view folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace tessera
