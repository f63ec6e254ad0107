// Where the last tokens of a growing text occurred before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/text/token_id.h"

namespace tessera {

// How a text may go on: as it did behind an earlier occurrence of its last tokens.
struct NgramMatch {
  int64_t position = 0;  // of the token behind that occurrence
  int64_t length = 0;    // last tokens that occurred there; 0: none is known
};

// Remembers the newest occurrence of every run of 2 to 5 tokens, in a table of fixed size: a run
// may push another one out of its entry, and what is found is compared with the text.
class NgramIndex {
 public:
  static constexpr int64_t kShortest = 2;
  static constexpr int64_t kLongest = 5;

  // For a text of num_tokens, more or less: 16 bytes for each, at least 4 KiB and at most 4 MiB.
  explicit NgramIndex(int64_t num_tokens);

  // The runs that end with the text's last token. Every token is added once, in order.
  void add(std::span<const TokenId> text);

  // The newest earlier occurrence of the longest run that the text ends with. Its last token has
  // not been added.
  NgramMatch find(std::span<const TokenId> text) const;

 private:
  // The entry of the last `length` tokens.
  size_t entry_of(std::span<const TokenId> text, int64_t length) const;

  std::vector<int32_t> positions_;  // behind the run of each entry; 0: none
};

}  // namespace tessera
