#include "apps/files/late_replacement.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/files/atomic_file.h"
#include "apps/files/text_input.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"
#include "apps/terminal/terminal.h"
#include "engine/engine.h"

namespace tessera {
namespace {

bool leads_to(int descriptor, const struct stat& file) {
  struct stat opened = {};
  return fstat(descriptor, &opened) == 0 && opened.st_dev == file.st_dev &&
         opened.st_ino == file.st_ino;
}

FileDescriptor open_special(const std::string& path) {
  int descriptor = -1;
  do {  // a named pipe without a reader keeps open() waiting
    throw_if_interrupted();
    descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  CHECK(descriptor >= 0, path, ": ", std::strerror(errno));
  return FileDescriptor(descriptor);
}

// A descriptor of its own, which can be closed.
FileDescriptor duplicate(int descriptor) {
  return FileDescriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

// What can be written from now on; nothing where a file is there, or will be, to be replaced.
FileDescriptor open_in_place(const std::string& path) {
  if (path == "-") return duplicate(STDOUT_FILENO);
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return FileDescriptor(-1);
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    if (leads_to(descriptor, file)) return duplicate(descriptor);
  }
  return S_ISREG(file.st_mode) ? FileDescriptor(-1) : open_special(path);
}

}  // namespace

LateReplacement::LateReplacement(const std::string& path)
    : path_(path), file_(open_in_place(path)) {
  // Made and given up at once: the same could be done later.
  if (file_.value() < 0) FileReplacement{path_};
}

void LateReplacement::write(std::string_view text) {
  if (file_.value() >= 0) {
    const std::string shown =
        is_terminal(file_.value()) ? escape_control_characters(text) : std::string(text);
    return write_all(file_.value(), shown, path_ == "-" ? "standard output" : path_);
  }
  FileReplacement replacement(path_);
  replacement.write(text);
  file_ = replacement.commit();
}

}  // namespace tessera
