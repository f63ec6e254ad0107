#include "engine/text/tokenizer_json/added_text.h"

namespace tessera {

int32_t AddedText::child_of(int32_t node, char byte) const {
  int32_t child = nodes_[static_cast<size_t>(node)].first_child;
  while (child != kNone && nodes_[static_cast<size_t>(child)].byte != byte) {
    child = nodes_[static_cast<size_t>(child)].next_sibling;
  }
  return child;
}

int32_t AddedText::add_node(char byte, int32_t next_sibling) {
  nodes_.push_back({.byte = byte, .next_sibling = next_sibling});
  return static_cast<int32_t>(nodes_.size() - 1);
}

void AddedText::add(std::string_view content, TokenId token) {
  int32_t& root = roots_[static_cast<unsigned char>(content[0])];
  if (root == kNone) root = add_node(content[0], kNone);
  int32_t node = root;
  for (const char byte : content.substr(1)) {
    int32_t child = child_of(node, byte);
    if (child == kNone) {
      child = add_node(byte, nodes_[static_cast<size_t>(node)].first_child);
      nodes_[static_cast<size_t>(node)].first_child = child;
    }
    node = child;
  }
  nodes_[static_cast<size_t>(node)].token = token;
}

std::optional<AddedText::Match> AddedText::match_at(std::string_view text, size_t begin) const {
  std::optional<Match> longest;
  int32_t node = roots_[static_cast<unsigned char>(text[begin])];
  for (size_t end = begin + 1; node != kNone; ++end) {
    const TokenId token = nodes_[static_cast<size_t>(node)].token;
    if (token != kNone) longest = Match{{begin, end}, token};
    node = end < text.size() ? child_of(node, text[end]) : kNone;
  }
  return longest;
}

std::optional<AddedText::Match> AddedText::find(std::string_view text, size_t from) const {
  if (nodes_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (const auto match = match_at(text, begin)) return match;
  }
  return std::nullopt;
}

}  // namespace tessera
