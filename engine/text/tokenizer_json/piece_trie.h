// Finds every piece of a vocabulary that a text begins with: a tree with a byte in each node, where
// pieces with the same beginning share its nodes.
#pragma once

#include <cstdint>
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
  explicit PieceTrie(std::vector<Piece> pieces = {});

  // Calls found(bytes, id) for each piece that `text` begins with, the shortest first.
  template <typename Found>
  void for_each_prefix(std::string_view text, const Found& found) const {
    uint32_t node = 0;
    for (size_t depth = 0; depth < text.size(); ++depth) {
      node = child_of(node, text[depth]);
      if (node == 0) return;
      if (ids_[node] >= 0) found(depth + 1, ids_[node]);
    }
  }

 private:
  // The root is nobody's child: 0 means that there is none.
  uint32_t child_of(uint32_t node, char byte) const;

  // Node n's children are the nodes from children_[n] to before children_[n + 1], in the order of
  // their bytes.
  std::vector<uint32_t> children_;
  std::vector<unsigned char> bytes_;
  std::vector<TokenId> ids_;  // of the piece that ends here; -1: none does
};

}  // namespace tessera
