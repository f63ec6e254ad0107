#include "apps/batch/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/files/atomic_file.h"
#include "apps/files/displaced_file.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"

namespace tessera {

BatchOutput::BatchOutput(const std::string& path, ExistingOutput existing)
    : path_(path), name_(path == "-" ? "standard output" : path), existing_(existing) {
  open();
  if (!is_file_) {
    if (existing == ExistingOutput::kRefuse) return;
    throw UsageError(name_ + " is not a file: there is nothing to --resume or --overwrite");
  }
  lock(descriptor_.value());
  if (existing == ExistingOutput::kResume) {
    answers_ = read_answers(descriptor_.value(), name_);
  } else if (existing == ExistingOutput::kRefuse && size_bytes() > 0) {
    throw UsageError(name_ + " exists",
                     "--resume keeps its answers and does the rest, --overwrite starts anew");
  }
}

void BatchOutput::begin(const Console& console) {
  require_in_place();
  if (answers_.is_torn) console.say(concat("dropped the last line of ", name_, ": it is torn"));
  const size_t num_errors = answers_.error_offsets.size();
  if (num_errors > 0) {
    console.say(concat("dropped ", counted(num_errors, "error record"), ", to try again"));
  }
  const bool is_overwritten = existing_ == ExistingOutput::kOverwrite && size_bytes() > 0;
  if (num_errors > 0 || is_overwritten) {
    replace();
  } else if (existing_ == ExistingOutput::kResume) {
    CHECK(ftruncate(descriptor_.value(), static_cast<off_t>(answers_.end_bytes)) == 0, name_, ": ",
          std::strerror(errno));
  }
  digest_ = answers_.digest;
  if (is_file_) sync_.emplace(descriptor_.value(), size_bytes());
}

void BatchOutput::replace() {
  FileReplacement replacement(path_);
  if (existing_ == ExistingOutput::kResume) {
    copy_answers(descriptor_.value(), name_, answers_, replacement);
  }
  lock(replacement.descriptor());
  descriptor_ = replacement.commit();
}

void BatchOutput::append(const OrderedJson& record) {
  check_disk();
  const std::string line =
      record.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  const uint64_t end_bytes = size_bytes();
  try {
    write_all(descriptor_.value(), line, name_);
  } catch (const Error& error) {
    if (sync_) sync_->wait();
    // A disk that fills up may have taken part of the line. One that has refused lines before it
    // keeps only those that it had told to be durable.
    const bool has_refused = sync_ && sync_->error() != 0;
    give_up(error.what(), has_refused ? sync_->durable_bytes() : end_bytes);
  }
  ++num_written_;
  if (record["error"].is_null()) digest_.add(record);
  if (sync_) {
    ends_of_new_lines_.push_back(end_bytes + line.size());
    sync_->note_written(end_bytes + line.size());
    forget_durable_lines();
  }
  require_in_place();
}

void BatchOutput::finish() {
  if (sync_) sync_->wait();
  check_disk();
}

void BatchOutput::check_disk() {
  if (!sync_ || sync_->error() == 0) return;
  give_up(concat(name_, ": write failed: ", std::strerror(sync_->error())), sync_->durable_bytes());
}

void BatchOutput::give_up(const std::string& problem, uint64_t end_bytes) {
  if (sync_) forget_durable_lines();
  const int64_t num_safe = num_written_ - static_cast<int64_t>(ends_of_new_lines_.size());
  [[maybe_unused]] const int ignored =
      ftruncate(descriptor_.value(), static_cast<off_t>(end_bytes));
  throw Error(concat(problem, "; ", num_safe, " results of this run are safe"),
              is_file_ ? "make room and run the same command with --resume" : "");
}

void BatchOutput::forget_durable_lines() {
  const uint64_t durable_bytes = sync_->durable_bytes();
  while (!ends_of_new_lines_.empty() && ends_of_new_lines_.front() <= durable_bytes) {
    ends_of_new_lines_.pop_front();
  }
}

// Write-only, unless there are answers to read: a pipe that this process could read from itself
// would never be found closed.
void BatchOutput::open() {
  if (path_ == "-") {
    descriptor_ = FileDescriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  } else {
    const int access = existing_ == ExistingOutput::kResume ? O_RDWR : O_WRONLY;
    do {  // a named pipe without a reader keeps open() waiting
      throw_if_interrupted();
      descriptor_ =
          FileDescriptor(::open(path_.c_str(), access | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    } while (descriptor_.value() < 0 && errno == EINTR);
  }
  struct stat status = {};
  CHECK(descriptor_.value() >= 0 && fstat(descriptor_.value(), &status) == 0, name_, ": ",
        std::strerror(errno));
  is_file_ = path_ != "-" && S_ISREG(status.st_mode);
}

void BatchOutput::lock(int descriptor) const {
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return;
  CHECK(errno != EWOULDBLOCK, name_, ": another run is writing to it");
  throw Error(concat(name_, ": cannot be locked: ", std::strerror(errno)));
}

void BatchOutput::require_in_place() const {
  if (!is_file_ || is_in_place(descriptor_.value(), path_)) return;
  const std::string place = place_of_displaced(descriptor_.value(), path_);
  throw Error(concat(name_, ": was deleted, moved or replaced while the batch was running; all ",
                     "that it held is in ", place),
              concat("move it back to ", name_, " and run the same command with --resume"));
}

uint64_t BatchOutput::size_bytes() const {
  struct stat status = {};
  CHECK(fstat(descriptor_.value(), &status) == 0, name_, ": ", std::strerror(errno));
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace tessera
