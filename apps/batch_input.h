// The requests of a batch input file, found and checked before anything is computed.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/batch_request.h"

namespace tessera {

// One request that the file holds. The requests themselves stay in the file: it may be large.
struct BatchItem {
  int64_t line_number = 0;              // from 1
  uint64_t offset_bytes = 0;            // where its line begins
  std::string custom_id;                // "" when the line has none
  std::optional<BatchProblem> problem;  // why it cannot be answered
};

class BatchInput {
 public:
  // Reads the file once. A byte order mark, CRLF and blank lines are accepted; a line above 64 MiB
  // is a problem of that line. Throws Error when the file cannot be read, is not a regular file, or
  // has a custom_id twice (both line numbers), and Interrupted on Ctrl-C.
  explicit BatchInput(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<BatchItem>& items() const { return items_; }
  int64_t num_problems() const;

  // The request of an item without a problem. Throws Error when the file has changed since.
  BatchRequest read(const BatchItem& item);

 private:
  struct Line {
    std::string text;
    uint64_t offset_bytes = 0;
    bool is_too_long = false;
  };
  std::optional<Line> next_line();
  void add_item(const Line& line, int64_t line_number);
  void require_unique_ids() const;

  std::string path_;
  std::ifstream file_;
  std::vector<BatchItem> items_;
};

}  // namespace tessera
