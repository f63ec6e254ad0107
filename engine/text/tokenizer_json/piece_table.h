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
  // A piece that is looked for soon: its place is on its way from memory. Vocabularies are larger
  // than caches, and a few lookups at once take hardly longer than one.
  struct Wanted {
    std::string_view piece;
    uint32_t hash = 0;
  };

  // Room for `num_pieces`.
  explicit PieceTable(size_t num_pieces = 0);

  // Whether `piece` was not there. At most as many as there is room for.
  bool insert(std::string_view piece, TokenId id);
  std::optional<TokenId> find(std::string_view piece) const { return find(wanted(piece)); }

  Wanted wanted(std::string_view piece) const;
  // The second step: fetches the bytes that are compared.
  void fetch(const Wanted& wanted) const;
  std::optional<TokenId> find(const Wanted& wanted) const;

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
  uint32_t rank = UINT32_MAX;  // the lower, the sooner
  TokenId id = -1;             // -1: nothing
};

class MergeTable {
 public:
  explicit MergeTable(size_t num_merges = 0);

  // A pair that is there already gets the new result.
  void insert(TokenId left, TokenId right, MergeResult result);
  // Begins to fetch the place of a pair that is inserted soon.
  void fetch(TokenId left, TokenId right) const;
  MergeResult find(TokenId left, TokenId right) const {
    return slots_[slot_of(pair_of(left, right))].result;
  }

 private:
  struct Slot {
    uint64_t pair = 0;
    MergeResult result;
  };
  static uint64_t pair_of(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t first_slot(uint64_t pair) const {
    constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;  // spreads neighbouring numbers
    return static_cast<size_t>((pair * kGoldenRatio) >> 32) & (slots_.size() - 1);
  }
  // The slot of the pair, or the empty one where it belongs.
  size_t slot_of(uint64_t pair) const {
    size_t index = first_slot(pair);
    while (slots_[index].result.id >= 0 && slots_[index].pair != pair) {
      index = (index + 1) & (slots_.size() - 1);
    }
    return index;
  }

  std::vector<Slot> slots_;
};

}  // namespace tessera
