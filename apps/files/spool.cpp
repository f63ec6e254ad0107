#include "apps/files/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "apps/files/text_input.h"
#include "apps/process/environment.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"
#include "engine/engine.h"

namespace tessera {
namespace {

FileDescriptor open_input(const std::string& path) {
  if (path == "-") return FileDescriptor(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  int descriptor = -1;
  do {  // a named pipe without a writer keeps open() waiting
    throw_if_interrupted();
    descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  return FileDescriptor(descriptor);
}

FileDescriptor open_nameless() {
  const std::string_view chosen = environment("TMPDIR");
  const std::string folder(chosen.empty() ? "/tmp" : chosen);
  std::string path = folder + "/tessera.XXXXXX";
  FileDescriptor file(mkostemp(path.data(), O_CLOEXEC));
  CHECK(file.value() >= 0, folder, ": cannot hold a temporary file: ", std::strerror(errno));
  unlink(path.c_str());
  return file;
}

// Up to a block; "" at the end.
std::string_view read_block(int descriptor, const std::string& name,
                            std::array<char, 65536>& block) {
  for (;;) {
    throw_if_interrupted();
    const ssize_t count = read(descriptor, block.data(), block.size());
    if (count >= 0) return {block.data(), static_cast<size_t>(count)};
    CHECK(errno == EINTR, name, ": read failed: ", std::strerror(errno));
  }
}

}  // namespace

FileDescriptor open_seekable(const std::string& path) {
  const std::string name = input_name(path);
  FileDescriptor input = open_input(path);
  struct stat status = {};
  CHECK(input.value() >= 0 && fstat(input.value(), &status) == 0, name, ": ", std::strerror(errno));
  CHECK(!S_ISDIR(status.st_mode), name, ": is a directory, expected a file");
  // Standard input may be a file that somebody has read a part of.
  if (S_ISREG(status.st_mode) && path != "-") return input;
  FileDescriptor file = open_nameless();
  std::array<char, 65536> block;
  for (std::string_view part = read_block(input.value(), name, block); !part.empty();
       part = read_block(input.value(), name, block)) {
    write_all(file.value(), part, "the temporary copy of " + name);
  }
  return file;
}

}  // namespace tessera
