#include "apps/batch_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "apps/atomic_file.h"
#include "apps/exit_codes.h"
#include "apps/output.h"

namespace tessera {

BatchOutput::BatchOutput(const std::string& path, const std::string& input_path,
                         ExistingOutput existing, const Console& console)
    : path_(path) {
  refuse_input_file(input_path);
  open_locked();
  try {
    if (existing == ExistingOutput::kOverwrite) {
      CHECK(ftruncate(descriptor_, 0) == 0, path_, ": ", std::strerror(errno));
    } else if (existing == ExistingOutput::kResume) {
      keep_answers(console);
    } else if (size_bytes() > 0) {
      throw UsageError(path_ + " exists",
                       "--resume keeps its answers and does the rest, --overwrite starts anew");
    }
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

BatchOutput::~BatchOutput() { close(descriptor_); }

void BatchOutput::append(const Json& record) {
  const std::string line = record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const uint64_t end_bytes = size_bytes();
  try {
    write_all(descriptor_, line, path_);
    // EINVAL: a pipe or device, which has nothing to make durable.
    CHECK(fdatasync(descriptor_) == 0 || errno == EINVAL, path_,
          ": write failed: ", std::strerror(errno));
  } catch (const Error& error) {
    // A disk that fills up may have taken part of the line. Should this fail too, --resume repairs.
    [[maybe_unused]] const int ignored = ftruncate(descriptor_, static_cast<off_t>(end_bytes));
    throw Error(concat(error.what(), "; ", num_written_, " results of this run are safe"),
                "make room and run the same command with --resume");
  }
  ++num_written_;
}

void BatchOutput::open_locked() {
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  CHECK(descriptor_ >= 0, path_, ": ", std::strerror(errno));
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  close(descriptor_);
  throw Error(path_ + ": another run is writing to it");
}

void BatchOutput::refuse_input_file(const std::string& input_path) const {
  struct stat input = {};
  struct stat output = {};
  if (stat(path_.c_str(), &output) != 0 || stat(input_path.c_str(), &input) != 0) return;
  if (input.st_dev == output.st_dev && input.st_ino == output.st_ino) {
    throw UsageError("input and output are the same file: " + path_);
  }
}

void BatchOutput::keep_answers(const Console& console) {
  std::string kept;
  std::string line;
  int64_t line_number = 0;
  int64_t num_errors = 0;
  bool is_torn = false;
  std::ifstream file(path_, std::ios::binary);
  while (std::getline(file, line)) {
    ++line_number;
    is_torn = file.eof();
    if (is_torn) break;
    const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    CHECK(record.is_object() && record.contains("custom_id") && record.contains("error"), path_,
          ':', line_number, ": not a batch result; --resume needs the output of an earlier run");
    if (record["error"].is_null() && record["custom_id"].is_string()) {
      answered_ids_.insert(record["custom_id"].get<std::string>());
      kept += line + "\n";
    } else {
      ++num_errors;
    }
  }
  if (is_torn) console.say(concat("dropped line ", line_number, " of ", path_, ": it is torn"));
  if (num_errors > 0) console.say(concat("dropped ", num_errors, " error records, to try again"));
  if (!is_torn && num_errors == 0) return;
  const int old_descriptor = descriptor_;
  replace_file(std::filesystem::canonical(path_).string(), kept);
  open_locked();
  close(old_descriptor);
}

uint64_t BatchOutput::size_bytes() const {
  struct stat status = {};
  CHECK(fstat(descriptor_, &status) == 0, path_, ": ", std::strerror(errno));
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace tessera
