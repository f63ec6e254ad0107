#include "apps/batch/devices/shard_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/files/displaced_file.h"
#include "engine/engine.h"

namespace tessera {

void OutputTotals::add(const OutputTotals& other) {
  answered += other.answered;
  errors += other.errors;
  prompt_tokens += other.prompt_tokens;
  generated_tokens += other.generated_tokens;
  digest.add(other.digest);
}

void ShardOutput::ignore_present() {
  FileDescriptor present(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  // An empty file is not replaced but written to.
  const bool has_lines =
      present.value() >= 0 && fstat(present.value(), &status) == 0 && status.st_size > 0;
  if (has_lines) ignored_ = std::move(present);
}

const OutputTotals& ShardOutput::update() {
  if (is_in_place(ignored_.value(), path_)) return totals_;
  if (is_another_file()) {
    file_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    ++num_files_;
    read_bytes_ = 0;
    totals_ = {};
  }
  if (file_.value() >= 0) read_new_lines();
  return totals_;
}

bool ShardOutput::is_another_file() const {
  struct stat status = {};
  if (stat(path_.c_str(), &status) != 0) return false;
  return !is_in_place(file_.value(), path_) || static_cast<uint64_t>(status.st_size) < read_bytes_;
}

// Begins behind the last whole line each time. What was seen of a torn one must not be kept: the
// process that goes on with this output cuts it off and writes other lines in its place.
void ShardOutput::read_new_lines() {
  std::array<char, 1 << 16> block;
  std::string text;  // of the file from read_bytes_ on
  for (;;) {
    const ssize_t count = pread(file_.value(), block.data(), block.size(),
                                static_cast<off_t>(read_bytes_ + text.size()));
    if (count < 0 && errno == EINTR) continue;
    CHECK(count >= 0, path_, ": read failed: ", std::strerror(errno));
    if (count == 0) return;
    size_t begin = 0;
    size_t end = text.size();  // what was there before has no end of a line
    text.append(block.data(), static_cast<size_t>(count));
    while ((end = text.find('\n', end)) != std::string::npos) {
      add_line(std::string_view(text).substr(begin, end - begin));
      begin = ++end;
    }
    read_bytes_ += begin;
    text.erase(0, begin);
  }
}

void ShardOutput::add_line(std::string_view line) {
  try {
    add_record(read_record(line, path_));
  } catch (const nlohmann::json::exception&) {
    throw Error(path_ + ": not a batch result");
  }
}

void ShardOutput::add_record(const nlohmann::ordered_json& record) {
  if (!record.at("error").is_null()) {
    ++totals_.errors;
    return;
  }
  const nlohmann::ordered_json& usage = record.at("response").at("body").at("usage");
  ++totals_.answered;
  totals_.prompt_tokens += usage.at("prompt_tokens").get<int64_t>();
  totals_.generated_tokens += usage.at("completion_tokens").get<int64_t>();
  totals_.digest.add(record);
}

}  // namespace tessera
