#include "apps/summarize/merges.h"

#include <algorithm>
#include <numeric>

namespace tessera {

std::vector<Range> merge_groups(std::span<const int64_t> text_tokens, int64_t room) {
  std::vector<Range> groups;
  int64_t left = 0;
  for (size_t index = 0; index < text_tokens.size(); ++index) {
    const auto place = static_cast<int64_t>(index);
    const bool takes = !groups.empty() && (text_tokens[index] <= left || groups.back().size() < 2);
    if (takes) {
      groups.back().end = place + 1;
      left -= text_tokens[index];
    } else {
      groups.push_back({place, place + 1});
      left = room - text_tokens[index];
    }
  }
  return groups;
}

bool groups_fit(std::span<const Range> groups, std::span<const int64_t> text_tokens, int64_t room) {
  return std::ranges::all_of(groups, [&](const Range& group) {
    const auto begin = text_tokens.begin() + group.begin;
    return group.size() == 1 || std::accumulate(begin, begin + group.size(), int64_t{0}) <= room;
  });
}

MergeCount count_merges(int64_t num_texts, int64_t text_tokens, int64_t room) {
  MergeCount count;
  while (num_texts > 1) {
    const std::vector<int64_t> texts(static_cast<size_t>(num_texts), text_tokens);
    const std::vector<Range> groups = merge_groups(texts, room);
    count.calls +=
        std::ranges::count_if(groups, [](const Range& group) { return group.size() > 1; });
    ++count.rounds;
    num_texts = static_cast<int64_t>(groups.size());
  }
  return count;
}

}  // namespace tessera
