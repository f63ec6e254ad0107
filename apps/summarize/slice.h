// Parts of documents, in tokens and in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/answer/range.h"
#include "apps/summarize/token_map.h"

namespace tessera {

// What a call reads of a document. The bytes are those of the tokens.
struct Slice {
  size_t document = 0;  // index
  Range tokens;
  Range bytes;
};

// A document with the places where it can be cut.
struct MappedDocument {
  std::string name;
  std::string text;
  TokenMap map;
  int64_t header_tokens = 0;  // of its name in a prompt; 0 where it is not named
  int64_t offset_bytes = 0;   // of the text in its file
};

// Tokens between two texts in one prompt that do not belong to either.
inline constexpr int64_t kJoinTokens = 4;

// Of each part of the document in a prompt, beside its text: the name above it, and what parts it
// from the one before. 0 where the document is the only one.
inline int64_t beside_tokens(const MappedDocument& document) {
  return document.header_tokens > 0 ? document.header_tokens + kJoinTokens : 0;
}

// All of a document.
inline Slice whole_slice(const MappedDocument& document, size_t index) {
  return {.document = index,
          .tokens = {0, document.map.num_tokens()},
          .bytes = {0, static_cast<int64_t>(document.text.size())}};
}

// All of each document.
inline std::vector<Slice> whole_slices(std::span<const MappedDocument> documents) {
  std::vector<Slice> slices;
  for (const MappedDocument& document : documents) {
    slices.push_back(whole_slice(document, slices.size()));
  }
  return slices;
}

}  // namespace tessera
