// Added tokens that are text: tokenizer.json may list pieces of the vocabulary, such as runs of
// newlines or "<table>", that become tokens before anything else is looked at.
//
// None of them is special, so that whoever writes them says nothing more than these words.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "engine/text/token_id.h"
#include "engine/text/tokenizer_json/pattern.h"

namespace tessera {

class AddedText {
 public:
  struct Match {
    TextSpan span;
    TokenId token = 0;
  };

  AddedText() { roots_.fill(kNone); }
  // `content` is not empty. The last token added with a content is the one.
  void add(std::string_view content, TokenId token);

  // The first place at `from` or later where a content is, and the longest one there; nothing where
  // there is none. Takes time in proportion to the text and the longest content.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  static constexpr int32_t kNone = -1;

  // Contents with the same beginning share its nodes: a tree with a byte in each node.
  struct Node {
    char byte = 0;
    TokenId token = kNone;  // whose content ends here
    int32_t first_child = kNone;
    int32_t next_sibling = kNone;
  };
  int32_t child_of(int32_t node, char byte) const;
  int32_t add_node(char byte, int32_t next_sibling);
  std::optional<Match> match_at(std::string_view text, size_t begin) const;

  std::array<int32_t, 256> roots_;  // by their byte
  std::vector<Node> nodes_;
};

}  // namespace tessera
