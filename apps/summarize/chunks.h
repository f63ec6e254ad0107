// Dividing a document into parts that each fit a call. Plain arithmetic: no model takes part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/summarize/slice.h"

namespace tessera {

struct ChunkLimits {
  int64_t max_tokens = 0;      // of a chunk, with what it shares with the one before
  int64_t overlap_tokens = 0;  // at most these are in two neighbouring chunks; at most a quarter of
                               // max_tokens
};

// All of the document in chunks, each of which begins where the one before ends, or up to
// overlap_tokens earlier where a sentence or at least a word begins. They end with a paragraph
// where one ends in their second half, else with a sentence, else with a word, and are about
// equally long. Only where not even a character ends within max_tokens is a chunk longer.
std::vector<Slice> plan_chunks(const MappedDocument& document, size_t index,
                               const ChunkLimits& limits);

// The beginning and the end of the documents, one after the other, about half of `room` tokens
// each, with what stands beside each part. Documents between them have no slice. All of them
// together have more than `room`.
std::vector<Slice> plan_middle(std::span<const MappedDocument> documents, int64_t room);

}  // namespace tessera
