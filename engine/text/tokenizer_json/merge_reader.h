// The ids of merges, found by their pieces, several at once: nearly all of the time goes into
// waiting for memory.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/text/tokenizer_json/piece_table.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

class MergeReader {
 public:
  static constexpr size_t kMost = 32;  // merges at once

  struct Entry {
    TokenId left = 0;
    TokenId right = 0;
    MergeResult result;
  };

  // `path` begins errors.
  MergeReader(const std::string& path, const PieceTable& pieces) : path_(path), pieces_(pieces) {}

  // Finds up to kMost merges, the first of which is number `first_index`. Throws Error naming one
  // whose parts or result no piece is.
  void read(std::span<const Merge> merges, size_t first_index);

  // What the last call found.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  TokenId id_of(const PieceTable::Wanted& wanted, size_t index) const;

  const std::string& path_;
  const PieceTable& pieces_;
  std::array<std::string, kMost> joined_;
  std::array<std::array<PieceTable::Wanted, 3>, kMost> wanted_;  // left, right, both
  std::vector<Entry> entries_;
};

}  // namespace tessera
