#include "apps/summarize/chunks.h"

#include <algorithm>

#include "apps/summarize/cuts.h"

namespace tessera {
namespace {

// Where a chunk that begins at `begin` may end at the latest: what is left is divided evenly, so
// that no small rest remains, with an eighth more to find the end of a paragraph.
int64_t chunk_limit(int64_t begin, int64_t end, const ChunkLimits& limits) {
  const int64_t left = end - begin;
  if (left <= limits.max_tokens) return end;
  const int64_t num_chunks = ceil_divide(left, limits.max_tokens - limits.overlap_tokens);
  const int64_t even = ceil_divide(left, num_chunks) + limits.overlap_tokens;
  return begin + std::min(limits.max_tokens, even + even / 8);
}

}  // namespace

std::vector<Slice> plan_chunks(const MappedDocument& document, size_t index,
                               const ChunkLimits& limits) {
  const TokenCuts cuts(document.text, document.map);
  const int64_t num_tokens = cuts.num_tokens();
  std::vector<Slice> chunks;
  for (int64_t begin = 0, end = 0; chunks.empty() || end < num_tokens;) {
    const int64_t limit = chunk_limit(begin, num_tokens, limits);
    int64_t next_end = limit == num_tokens ? num_tokens : cuts.last_cut(begin, limit);
    // Every chunk reads something new.
    if (next_end <= end) next_end = cuts.last_cut(end, std::max(limit, end + 1));
    end = next_end;
    chunks.push_back(cuts.slice(index, begin, end));
    const int64_t shared = std::max(begin + 1, end - limits.overlap_tokens);
    begin = limits.overlap_tokens > 0 ? cuts.first_cut(shared, end) : end;
  }
  return chunks;
}

std::vector<Slice> plan_middle(std::span<const MappedDocument> documents, int64_t room) {
  std::vector<Slice> head;
  std::vector<Slice> tail;
  int64_t left = room / 2;
  for (size_t index = 0; index < documents.size(); ++index) {
    const TokenCuts cuts(documents[index].text, documents[index].map);
    left -= beside_tokens(documents[index]);
    if (left <= 0) break;
    const bool is_whole = cuts.num_tokens() <= left;
    const int64_t end = is_whole ? cuts.num_tokens() : cuts.last_cut(0, left);
    head.push_back(cuts.slice(index, 0, end));
    left = is_whole ? left - end : 0;
  }
  left = room - room / 2;
  for (size_t index = documents.size(); index-- > 0;) {
    const TokenCuts cuts(documents[index].text, documents[index].map);
    left -= beside_tokens(documents[index]);
    if (left <= 0) break;
    const int64_t num_tokens = cuts.num_tokens();
    const bool is_whole = num_tokens <= left;
    const int64_t low = num_tokens - left;
    const int64_t begin = is_whole ? 0 : cuts.first_cut(low, low + left / 2);
    tail.push_back(cuts.slice(index, begin, num_tokens));
    left = is_whole ? left - num_tokens : 0;
  }
  head.insert(head.end(), tail.rbegin(), tail.rend());
  return head;
}

}  // namespace tessera
