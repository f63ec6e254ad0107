// The requests of a batch input file, found and checked before anything is computed.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "apps/batch/digests.h"
#include "apps/batch/request.h"
#include "apps/batch/shard.h"
#include "apps/files/line_reader.h"

namespace tessera {

// One request that the file holds, in few bytes: the requests themselves, and what is wrong with
// them, stay in the file, which may be large.
struct BatchItem {
  int64_t line_number = 0;      // from 1
  uint64_t offset_bytes = 0;    // where its line begins
  uint64_t line_hash = 0;       // of the line's text, as this process computes it
  IdDigest id;                  // of its custom_id; of "" when the line has none
  uint64_t request_digest = 0;  // 0 when it cannot be answered
  int64_t max_tokens = 0;       // of its answer; 0 when it does not say

  bool is_problem() const { return request_digest == 0; }
};
static_assert(sizeof(BatchItem) == 56);  // docs/batch.md tells of it

class BatchInput {
 public:
  // Reads the file once, or standard input when `path` is "-", and keeps the items of `shard`: the
  // lines that are not blank are numbered from 0. A byte order mark, CRLF and blank lines are
  // accepted; a line above 64 MiB is a problem of that line. Throws Error when the file cannot be
  // read or has a custom_id twice (both line numbers), and Interrupted on Ctrl-C.
  BatchInput(const std::string& path, const Shard& shard);

  const std::string& name() const { return name_; }
  const std::vector<BatchItem>& items() const { return items_; }
  int64_t num_problems() const;
  // Whether a line of the file, of any shard, asks for a chat.
  bool has_chats() const { return has_chats_; }

  // The request of an item, or why it is none. Throws Error when the line has changed since, and
  // Interrupted on Ctrl-C.
  std::variant<BatchRequest, BatchProblem> read(const BatchItem& item);

 private:
  void add_item(const FileLine& line);
  void require_unique_ids();
  void keep(const Shard& shard);

  std::string name_;
  LineReader reader_;
  std::vector<BatchItem> items_;
  bool has_chats_ = false;
};

// The custom_id of what a line holds; "" when it has none.
const std::string& custom_id_of(const std::variant<BatchRequest, BatchProblem>& line);

}  // namespace tessera
