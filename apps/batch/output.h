// The results of a batch: a file of lines that is valid after every write, whatever happens next.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/batch/answers.h"
#include "apps/terminal/console.h"
#include "engine/input_files.h"

namespace tessera {

enum class ExistingOutput : uint8_t { kRefuse, kResume, kOverwrite };

class BatchOutput {
 public:
  using OrderedJson = nlohmann::ordered_json;

  // Opens and locks `path`, or takes standard output when it is "-"; what is there stays as it is
  // until begin(). Throws UsageError when it has content and `existing` is kRefuse, or is no file
  // and `existing` is not; Error when it cannot be written, is in use by another run or, on
  // kResume, is not the output of a batch.
  BatchOutput(const std::string& path, ExistingOutput existing);

  const std::string& name() const { return name_; }
  // False for pipes and devices, which keep nothing.
  bool is_file() const { return is_file_; }
  // On kResume, what had been answered when the file was opened.
  const BatchAnswers& answers() const { return answers_; }

  // Makes the file hold the answers and nothing else: drops error records, whose requests will be
  // tried again, and a last line that was torn when the run was killed; both are said on the
  // console.
  void begin(const Console& console);

  // Adds one line, durable when this returns. Throws OutputClosed when it is a pipe that nobody
  // reads; Error with what is safe and how to go on, the file then ending after the last whole
  // line; and Error when the file was deleted, moved or replaced, with where its lines are now.
  void append(const OrderedJson& record);

 private:
  void open();
  void lock(int descriptor) const;
  void require_in_place() const;
  uint64_t size_bytes() const;

  std::string path_;
  std::string name_;  // for messages
  ExistingOutput existing_;
  FileDescriptor descriptor_{-1};
  bool is_file_ = false;
  BatchAnswers answers_;
  int64_t num_written_ = 0;
};

}  // namespace tessera
