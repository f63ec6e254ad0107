#include "engine/serving/prefix_cache.h"

#include <algorithm>
#include <utility>

namespace tessera {

PrefixCache::PrefixCache(PagePool& pool, bool is_on)
    : pool_(pool), is_on_(is_on), entries_(static_cast<size_t>(pool.num_pages())) {
  pool_.set_on_lost([this](int32_t page) { erase(page); });
}

PrefixCache::~PrefixCache() {
  clear();
  pool_.set_on_lost({});
}

// Each word is mixed as in splitmix64 (Steele et al. 2014).
PrefixCache::Hash PrefixCache::hash_of(PageName predecessor, std::span<const TokenId> tokens) {
  Hash hash = predecessor;
  for (const TokenId token : tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) + 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
    hash ^= hash >> 27;
  }
  return hash;
}

int32_t PrefixCache::page_of(PageName predecessor, std::span<const TokenId> tokens) const {
  const auto [begin, end] = by_hash_.equal_range(hash_of(predecessor, tokens));
  for (auto candidate = begin; candidate != end; ++candidate) {
    const Entry& found = entry(candidate->second);
    if (found.predecessor == predecessor && std::ranges::equal(found.tokens, tokens)) {
      return candidate->second;
    }
  }
  return -1;
}

CachedPrefix PrefixCache::find(std::span<const TokenId> tokens) const {
  CachedPrefix prefix;
  if (!is_on_) return prefix;
  const auto page_size = static_cast<size_t>(pool_.page_size());
  PageName last = kNoPage;
  for (size_t begin = 0; begin + page_size < tokens.size(); begin += page_size) {
    const int32_t page = page_of(last, tokens.subspan(begin, page_size));
    if (page < 0) break;
    prefix.is_coming_on = entry(page).is_coming;
    if (prefix.is_coming_on) break;
    last = entry(page).name;
    prefix.pages.push_back(page);
    prefix.names.push_back(last);
  }
  return prefix;
}

void PrefixCache::add(Sequence& sequence, int64_t num_tokens) {
  if (!is_on_) return;
  const auto page_size = static_cast<size_t>(pool_.page_size());
  const std::span tokens(sequence.tokens());
  std::vector<PageName>& names = sequence.page_names();
  const auto num_pages = static_cast<size_t>(num_tokens) / page_size;
  if (names.size() >= num_pages) return;  // as in most steps
  const auto tokens_of_page = [&](size_t index) {
    return tokens.subspan(index * page_size, page_size);
  };
  const auto predecessor_of = [&](size_t index) { return index > 0 ? names[index - 1] : kNoPage; };
  // A name may be of another sequence's page, lost since: nobody finds what is behind it.
  const auto has_lost_last = [&] {
    const size_t last = names.size() - 1;
    const int32_t page = page_of(predecessor_of(last), tokens_of_page(last));
    return page < 0 || entry(page).name != names[last];
  };
  while (!names.empty() && has_lost_last()) names.pop_back();
  while (names.size() < num_pages) {
    const size_t index = names.size();
    names.push_back(
        add_page(sequence.block_table()[index], predecessor_of(index), tokens_of_page(index)));
  }
}

// Two sequences may have computed the same: the page of the first is the one that is found. What
// may run out of memory comes first: half of it leaves a page that cannot be found.
PageName PrefixCache::add_page(int32_t page, PageName predecessor,
                               std::span<const TokenId> tokens) {
  const int32_t known = page_of(predecessor, tokens);
  if (known >= 0) return entry(known).name;
  erase(page);
  Entry added = {.name = ++last_name_,
                 .predecessor = predecessor,
                 .tokens = {tokens.begin(), tokens.end()},
                 .is_coming = true};
  coming_.push_back(page);
  by_hash_.emplace(hash_of(predecessor, tokens), page);
  entry(page) = std::move(added);
  pool_.keep(page);
  return last_name_;
}

void PrefixCache::publish() {
  for (const int32_t page : coming_) entry(page).is_coming = false;
  coming_.clear();
}

void PrefixCache::withdraw() {
  for (const int32_t page : coming_) pool_.lose(page);
  coming_.clear();
}

void PrefixCache::forget(const Sequence& sequence) {
  for (const int32_t page : sequence.block_table()) pool_.lose(page);
}

void PrefixCache::clear() {
  coming_.clear();
  for (size_t page = 0; page < entries_.size(); ++page) pool_.lose(static_cast<int32_t>(page));
}

void PrefixCache::erase(int32_t page) {
  Entry& lost = entry(page);
  if (lost.name == kNoPage) return;
  const auto [begin, end] = by_hash_.equal_range(hash_of(lost.predecessor, lost.tokens));
  const auto found =
      std::find_if(begin, end, [&](const auto& candidate) { return candidate.second == page; });
  by_hash_.erase(found);
  lost = {};
}

}  // namespace tessera
