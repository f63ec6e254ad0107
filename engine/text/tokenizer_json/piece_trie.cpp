#include "engine/text/tokenizer_json/piece_trie.h"

#include <algorithm>

namespace tessera {
namespace {

// Pieces [begin, end) of the sorted list, which agree in their first `depth` bytes.
struct Group {
  size_t begin = 0;
  size_t end = 0;
  size_t depth = 0;
};

}  // namespace

PieceTrie::PieceTrie(std::vector<Piece> pieces) : children_{}, bytes_{0}, ids_{-1} {
  std::ranges::sort(pieces, {}, &Piece::text);
  const auto byte_at = [&](size_t piece, size_t depth) {
    return static_cast<unsigned char>(pieces[piece].text[depth]);
  };
  std::vector<Group> groups = {{.begin = 0, .end = pieces.size(), .depth = 0}};
  for (size_t node = 0; node < groups.size(); ++node) {
    auto [begin, end, depth] = groups[node];
    children_.push_back(static_cast<uint32_t>(groups.size()));
    // A piece comes before those that it begins.
    if (begin < end && pieces[begin].text.size() == depth) ids_[node] = pieces[begin++].id;
    while (begin < end) {
      const unsigned char byte = byte_at(begin, depth);
      size_t next = begin;
      while (next < end && byte_at(next, depth) == byte) ++next;
      groups.push_back({.begin = begin, .end = next, .depth = depth + 1});
      bytes_.push_back(byte);
      ids_.push_back(-1);
      begin = next;
    }
  }
  children_.push_back(static_cast<uint32_t>(groups.size()));
}

uint32_t PieceTrie::child_of(uint32_t node, char byte) const {
  const auto wanted = static_cast<unsigned char>(byte);
  const auto begin = bytes_.begin() + children_[node];
  const auto end = bytes_.begin() + children_[node + 1];
  const auto found = std::lower_bound(begin, end, wanted);
  if (found == end || *found != wanted) return 0;
  return static_cast<uint32_t>(found - bytes_.begin());
}

}  // namespace tessera
