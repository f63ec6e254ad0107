#include "engine/text/tokenizer_json/piece_trie.h"

#include <algorithm>
#include <tuple>

namespace tessera {
namespace {

// A search that tried more than this many bases has passed what few can use: later ones begin where
// it ended, so that building takes time in proportion to the nodes.
constexpr uint32_t kManyBases = 16;

// The first eight bytes as a number, zeros where there are fewer: numbers are in the order of
// texts.
uint64_t first_bytes(std::string_view text) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(number); ++i) {
    number = number << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
  }
  return number;
}

// Few comparisons have to look at texts, which lie all over memory.
std::vector<PieceTrie::Piece> sorted(const std::vector<PieceTrie::Piece>& pieces) {
  std::vector<std::tuple<uint64_t, std::string_view, TokenId>> entries;
  entries.reserve(pieces.size());
  for (const auto& [text, id] : pieces) entries.emplace_back(first_bytes(text), text, id);
  std::ranges::sort(entries);
  std::vector<PieceTrie::Piece> result;
  result.reserve(entries.size());
  for (const auto& [number, text, id] : entries) result.push_back({text, id});
  return result;
}

// Pieces [begin, end) of the sorted list, which agree in their first `depth` bytes: those of a
// node.
struct Group {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t depth = 0;
  uint32_t node = 0;
};

// The children of `group`, by the byte that comes next in their pieces. One piece may end here.
void divide(std::span<const PieceTrie::Piece> pieces, const Group& group,
            std::vector<Group>& children, std::vector<unsigned char>& bytes) {
  children.clear();
  bytes.clear();
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const std::string_view text = pieces[i].text;
    if (text.size() == group.depth) continue;
    const auto byte = static_cast<unsigned char>(text[group.depth]);
    if (bytes.empty() || bytes.back() != byte) {
      bytes.push_back(byte);
      children.push_back({.begin = i, .end = i, .depth = group.depth + 1});
    }
    children.back().end = i + 1;
  }
}

}  // namespace

PieceTrie::PieceTrie(const std::vector<Piece>& unsorted) {
  make_room(first_free_);
  const std::vector<Piece> pieces = sorted(unsorted);
  std::vector<Group> groups = {
      {.begin = 0, .end = static_cast<uint32_t>(pieces.size()), .node = kRoot}};
  std::vector<Group> children;
  std::vector<unsigned char> bytes;
  for (size_t done = 0; done < groups.size(); ++done) {
    const Group group = groups[done];
    divide(pieces, group, children, bytes);
    if (children.empty()) continue;
    const uint32_t base = find_base(bytes);
    cells_[group.node].base = base;
    for (size_t i = 0; i < children.size(); ++i) {
      Group& child = children[i];
      child.node = base + bytes[i];
      // A piece comes before those that it begins.
      const Piece& first = pieces[child.begin];
      cells_[child.node].parent = group.node;
      cells_[child.node].id = first.text.size() == child.depth ? first.id : -1;
      groups.push_back(child);
    }
  }
}

uint32_t PieceTrie::find_base(std::span<const unsigned char> bytes) {
  // Most nodes have one child, which any cell will do for.
  if (bytes.size() == 1) {
    while (cells_[first_free_].parent != kNobody) make_room(++first_free_);
    return first_free_ - bytes[0];
  }
  uint32_t base = first_base_;
  while (!is_free(base, bytes)) make_room(++base);
  if (base - first_base_ > kManyBases) first_base_ = base;
  return base;
}

void PieceTrie::make_room(uint32_t base) {
  if (cells_.size() < base + kByteValues) cells_.resize(base + kByteValues);
}

bool PieceTrie::is_free(uint32_t base, std::span<const unsigned char> bytes) const {
  return std::ranges::all_of(
      bytes, [&](unsigned char byte) { return cells_[base + byte].parent == kNobody; });
}

}  // namespace tessera
