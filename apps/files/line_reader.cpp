#include "apps/files/line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/process/signals.h"
#include "engine/engine.h"

namespace tessera {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

}  // namespace

LineReader::LineReader(FileDescriptor file, std::string name, size_t max_line_bytes)
    : file_(std::move(file)), name_(std::move(name)), max_line_bytes_(max_line_bytes) {}

std::optional<FileLine> LineReader::next() {
  FileLine line;
  line.number = next_number_;
  line.offset_bytes = offset_bytes();
  if (position_ == block_.size() && !fill()) return std::nullopt;
  for (;;) {
    const size_t end = block_.find('\n', position_);
    take(std::string_view(block_).substr(position_, end - position_), line);
    line.is_terminated = end != std::string::npos;
    position_ = line.is_terminated ? end + 1 : block_.size();
    if (line.is_terminated || !fill()) break;
  }
  if (line.text.ends_with('\r')) line.text.pop_back();
  ++next_number_;
  return line;
}

void LineReader::seek(uint64_t offset_bytes, int64_t number) {
  next_number_ = number;
  const uint64_t block_begin = block_end_ - block_.size();
  if (offset_bytes >= block_begin && offset_bytes < block_end_) {
    position_ = static_cast<size_t>(offset_bytes - block_begin);
    return;
  }
  block_.clear();
  position_ = 0;
  block_end_ = offset_bytes;
}

bool LineReader::fill() {
  block_.resize(kBlockBytes);
  ssize_t count = -1;
  do {
    throw_if_interrupted();
    count = pread(file_.value(), block_.data(), block_.size(), static_cast<off_t>(block_end_));
  } while (count < 0 && errno == EINTR);
  CHECK(count >= 0, name_, ": read failed at byte ", block_end_, ": ", std::strerror(errno));
  block_.resize(static_cast<size_t>(count));
  position_ = 0;
  block_end_ += static_cast<uint64_t>(count);
  return count > 0;
}

void LineReader::take(std::string_view part, FileLine& line) const {
  const size_t room = max_line_bytes_ - line.text.size();
  line.is_too_long = line.is_too_long || part.size() > room;
  line.text += part.substr(0, room);
}

}  // namespace tessera
