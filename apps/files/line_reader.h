// Lines of a file that may be large, damaged or on a failing disk.
//
// std::getline takes a read error for the end of the file: a batch would lose the requests behind
// it, or answer again what had been answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/input_files.h"

namespace tessera {

struct FileLine {
  std::string text;           // without "\n" or "\r\n"; only its beginning when it is too long
  int64_t number = 0;         // from 1, after seek() too
  uint64_t offset_bytes = 0;  // where it begins
  bool is_terminated = true;  // false for a last line without "\n"
  bool is_too_long = false;
};

class LineReader {
 public:
  // Reads `file`, which can seek, from its beginning. `name` is for messages. Of a longer line than
  // `max_line_bytes` the rest is passed over.
  LineReader(FileDescriptor file, std::string name, size_t max_line_bytes);

  // Nothing at the end. Throws Error when the file cannot be read, Interrupted on Ctrl-C.
  std::optional<FileLine> next();

  // Where the next line begins.
  uint64_t offset_bytes() const { return block_end_ - (block_.size() - position_); }

  // The next line is number `number` and begins at `offset_bytes`.
  void seek(uint64_t offset_bytes, int64_t number);

 private:
  // Reads the next block. False at the end.
  bool fill();
  void take(std::string_view part, FileLine& line) const;

  FileDescriptor file_;
  std::string name_;
  size_t max_line_bytes_;
  std::string block_;
  size_t position_ = 0;     // in block_
  uint64_t block_end_ = 0;  // where block_ ends in the file, in bytes
  int64_t next_number_ = 1;
};

}  // namespace tessera
