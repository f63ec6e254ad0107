#include "apps/batch/devices/shard_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/engine.h"

namespace tessera {

void OutputTotals::add(const OutputTotals& other) {
  answered += other.answered;
  errors += other.errors;
  prompt_tokens += other.prompt_tokens;
  generated_tokens += other.generated_tokens;
  digest.add(other.digest);
}

const OutputTotals& ShardOutput::update() {
  if (is_another_file()) {
    file_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    read_bytes_ = 0;
    torn_.clear();
    totals_ = {};
  }
  if (file_.value() >= 0) read_new_lines();
  return totals_;
}

bool ShardOutput::is_another_file() const {
  struct stat mine = {};
  struct stat theirs = {};
  if (stat(path_.c_str(), &theirs) != 0) return false;
  if (file_.value() < 0 || fstat(file_.value(), &mine) != 0) return true;
  return mine.st_ino != theirs.st_ino || static_cast<uint64_t>(theirs.st_size) < read_bytes_;
}

void ShardOutput::read_new_lines() {
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t count =
        pread(file_.value(), block.data(), block.size(), static_cast<off_t>(read_bytes_));
    if (count < 0 && errno == EINTR) continue;
    CHECK(count >= 0, path_, ": read failed: ", std::strerror(errno));
    if (count == 0) return;
    read_bytes_ += static_cast<uint64_t>(count);
    torn_.append(block.data(), static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end = torn_.find('\n'); end != std::string::npos; end = torn_.find('\n', begin)) {
      add_line(std::string_view(torn_).substr(begin, end - begin));
      begin = end + 1;
    }
    torn_.erase(0, begin);
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
