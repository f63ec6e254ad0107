// The requests of a batch input file, found and checked before anything is computed.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "apps/batch/request.h"
#include "apps/files/line_reader.h"

namespace tessera {

// One request that the file holds. The requests themselves stay in the file: it may be large.
struct BatchItem {
  int64_t line_number = 0;    // from 1
  uint64_t offset_bytes = 0;  // where its line begins
  std::string custom_id;      // "" when the line has none
  std::string request_id;     // "" when it cannot be answered

  bool is_problem() const { return request_id.empty(); }
};

class BatchInput {
 public:
  // Reads the file once, or standard input when `path` is "-". A byte order mark, CRLF and blank
  // lines are accepted; a line above 64 MiB is a problem of that line. Throws Error when the file
  // cannot be read or has a custom_id twice (both line numbers), and Interrupted on Ctrl-C.
  explicit BatchInput(const std::string& path);

  const std::string& name() const { return name_; }
  const std::vector<BatchItem>& items() const { return items_; }
  int64_t num_problems() const;

  // The request of an item, or why it is none. Throws Error when the file has changed since.
  std::variant<BatchRequest, BatchProblem> read(const BatchItem& item);

 private:
  void add_item(const FileLine& line);
  void require_unique_ids() const;

  std::string name_;
  LineReader reader_;
  std::vector<BatchItem> items_;
};

}  // namespace tessera
