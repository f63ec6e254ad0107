// The output of one shard while another process writes it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "apps/batch/answers_digest.h"
#include "engine/input_files.h"

namespace tessera {

// What whole lines of an output say.
struct OutputTotals {
  int64_t answered = 0;
  int64_t errors = 0;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  AnswersDigest digest;

  void add(const OutputTotals& other);
};

class ShardOutput {
 public:
  // The file need not be there yet.
  explicit ShardOutput(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Leaves out the answers that are there now: the run that is to come replaces the file.
  void ignore_present();

  // Whether update() has found no other file than the first time: answers may have joined what it
  // holds, but of the errors that were there none is gone.
  bool is_as_found() const { return num_files_ <= 1; }

  // Of all whole lines that are there now; reads those that are new since the last call. A file
  // that was replaced is read again. Throws Error when it cannot be read or is no output.
  const OutputTotals& update();

 private:
  bool is_another_file() const;
  void read_new_lines();
  void add_line(std::string_view line);
  // Throws what the JSON library throws.
  void add_record(const nlohmann::ordered_json& record);

  std::string path_;
  FileDescriptor file_{-1};
  FileDescriptor ignored_{-1};  // kept open, so that no other file becomes the same inode
  int num_files_ = 0;           // that were read, each in place of the one before
  uint64_t read_bytes_ = 0;     // of the file, to the end of a line
  OutputTotals totals_;
};

}  // namespace tessera
