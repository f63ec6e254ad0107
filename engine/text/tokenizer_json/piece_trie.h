// Finds every piece of a vocabulary that a text begins with: a tree with a byte in each node, where
// pieces with the same beginning share its nodes.
//
// The tree is a double array (Aoe 1989): a node is a cell, and its child for a byte can only be the
// cell at its base + that byte, which says whose child it is. So a step down costs one cell,
// however many children there are.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/text/token_id.h"

namespace tessera {

class PieceTrie {
 public:
  struct Piece {
    std::string_view text;  // not empty
    TokenId id = 0;
  };

  // `pieces` differ from each other.
  explicit PieceTrie(const std::vector<Piece>& pieces = {});

  // Calls found(bytes, id) for each piece that `text` begins with, the shortest first.
  template <typename Found>
  void for_each_prefix(std::string_view text, const Found& found) const {
    uint32_t node = kRoot;
    for (size_t depth = 0; depth < text.size(); ++depth) {
      const uint32_t child = cells_[node].base + static_cast<unsigned char>(text[depth]);
      if (cells_[child].parent != node) return;
      node = child;
      if (cells_[node].id >= 0) found(depth + 1, cells_[node].id);
    }
  }

 private:
  static constexpr uint32_t kByteValues = 256;
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNobody = UINT32_MAX;

  struct Cell {
    uint32_t base = 0;  // of the children's cells
    uint32_t parent = kNobody;
    TokenId id = -1;  // of the piece that ends here; -1: none does
  };

  // A base at which the cells of children with these bytes are free.
  uint32_t find_base(std::span<const unsigned char> bytes);
  void make_room(uint32_t base);  // for all children that it may have
  bool is_free(uint32_t base, std::span<const unsigned char> bytes) const;

  uint32_t first_base_ = 1;            // where searches begin, behind the root's cell
  uint32_t first_free_ = kByteValues;  // where the search for one child begins
  std::vector<Cell> cells_;            // as far as any base + 255
};

}  // namespace tessera
