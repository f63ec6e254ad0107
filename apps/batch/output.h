// The results of a batch: a file of lines that is valid after every write, whatever happens next.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/batch/answers.h"
#include "apps/batch/sync_thread.h"
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
  // console. Where whole lines go, another file takes the place of this one, so that who reads it
  // meanwhile can tell.
  void begin(const Console& console);

  // Adds one line: it outlasts this process at once, and the machine after SyncThread::kMaxDelay
  // and what the disk takes. Throws OutputClosed when it is a pipe that nobody reads; Error with
  // what is safe and, of a file, how to go on, the file then ending after the last line that is
  // safe; and Error when the file was deleted, moved or replaced, with where its lines are now.
  void append(const OrderedJson& record);

  // Waits until every line is durable. Throws what append() throws.
  void finish();

  // Of all answers: those that were there and those that were added.
  const AnswersDigest& digest() const { return digest_; }

 private:
  void open();
  void lock(int descriptor) const;
  // By a file of the answers alone.
  void replace();
  void require_in_place() const;
  uint64_t size_bytes() const;
  // Throws the Error of a disk that has refused lines.
  void check_disk();
  // Cuts the file after `end_bytes`, behind which nothing is safe. Should that fail too, --resume
  // repairs it.
  [[noreturn]] void give_up(const std::string& problem, uint64_t end_bytes);
  void forget_durable_lines();

  std::string path_;
  std::string name_;  // for messages
  ExistingOutput existing_;
  FileDescriptor descriptor_{-1};
  bool is_file_ = false;
  BatchAnswers answers_;
  AnswersDigest digest_;
  int64_t num_written_ = 0;
  std::deque<uint64_t> ends_of_new_lines_;  // in bytes; of those not known to be durable
  std::optional<SyncThread> sync_;          // of a file; after descriptor_, which it uses
};

}  // namespace tessera
