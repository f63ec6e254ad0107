// Token ids by the bytes of their pieces: a hash table in three blocks of memory, since a
// vocabulary of 262,144 entries is built while somebody waits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/token_id.h"

namespace tessera {

class PieceTable {
 public:
  // Room for `num_pieces`.
  explicit PieceTable(size_t num_pieces = 0);

  // Whether `piece` was not there. At most as many as there is room for.
  bool insert(std::string_view piece, TokenId id);
  std::optional<TokenId> find(std::string_view piece) const;

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t offset = 0;  // of the piece in bytes_
    uint32_t length = 0;
    TokenId id = -1;  // -1: empty
  };
  // The slot of `piece`, or the empty one where it belongs.
  size_t slot_of(std::string_view piece, uint32_t hash) const;

  std::vector<Slot> slots_;  // a power of two, at least half of them empty
  std::string bytes_;
};

// What becomes of two neighbouring tokens.
struct MergeResult {
  uint32_t rank = 0;  // the lower, the sooner
  TokenId id = -1;
};

class MergeTable {
 public:
  explicit MergeTable(size_t num_merges = 0);

  // A pair that is there already gets the new result.
  void insert(TokenId left, TokenId right, MergeResult result);
  // Nullptr where the pair does not merge.
  const MergeResult* find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    uint64_t pair = 0;
    MergeResult result;  // id -1: empty
  };
  size_t slot_of(uint64_t pair) const;

  std::vector<Slot> slots_;
};

}  // namespace tessera
