// The results of a batch: a file of lines that is valid after every write, whatever happens next.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>

#include "apps/console.h"

namespace tessera {

enum class ExistingOutput : uint8_t { kRefuse, kResume, kOverwrite };

class BatchOutput {
 public:
  using Json = nlohmann::ordered_json;

  // Opens and locks `path`. Throws UsageError when it is the input file, or has content and
  // `existing` is kRefuse; Error when it cannot be written, is in use by another run, or, on
  // kResume, is not the output of a batch.
  //
  // kResume keeps the answers and drops the error records, whose requests will be tried again, and
  // a last line that was torn when the run was killed; both are said on the console.
  BatchOutput(const std::string& path, const std::string& input_path, ExistingOutput existing,
              const Console& console);
  ~BatchOutput();
  BatchOutput(const BatchOutput&) = delete;
  BatchOutput& operator=(const BatchOutput&) = delete;

  // custom_ids that had been answered when the file was opened.
  const std::unordered_set<std::string>& answered_ids() const { return answered_ids_; }

  // Adds one line, durable when this returns. Throws Error with what is safe and how to go on; the
  // file then ends after the last whole line.
  void append(const Json& record);

 private:
  void open_locked();
  void refuse_input_file(const std::string& input_path) const;
  void keep_answers(const Console& console);
  uint64_t size_bytes() const;

  std::string path_;
  int descriptor_ = -1;
  std::unordered_set<std::string> answered_ids_;
  int64_t num_written_ = 0;
};

}  // namespace tessera
