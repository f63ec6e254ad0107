// How partial summaries become one: which are merged together, and in how many rounds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/summarize/slice.h"

namespace tessera {

// The texts of one round, of so many tokens each, in groups of neighbours that have at most `room`
// tokens together, each as large as it can be. A group has two texts at least, but for the last, so
// that every round leaves fewer, whatever their lengths. Indices.
std::vector<Range> merge_groups(std::span<const int64_t> text_tokens, int64_t room);

// Whether every group that needs a call fits. Two texts may not: broken characters in what a model
// wrote have more tokens when they are read again.
bool groups_fit(std::span<const Range> groups, std::span<const int64_t> text_tokens, int64_t room);

struct MergeCount {
  int64_t rounds = 0;
  int64_t calls = 0;  // a group of one text needs none
};

// For num_texts of text_tokens each, the longest that they can be: what comes may need less.
MergeCount count_merges(int64_t num_texts, int64_t text_tokens, int64_t room);

}  // namespace tessera
