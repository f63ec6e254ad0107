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
  return kNone;
}

CachedPrefix PrefixCache::find(std::span<const TokenId> tokens) const {
  CachedPrefix prefix;
  if (!is_on_) return prefix;
  const auto page_size = static_cast<size_t>(pool_.page_size());
  PageName last = kNoPage;
  for (size_t begin = 0; begin + page_size < tokens.size(); begin += page_size) {
    const int32_t page = page_of(last, tokens.subspan(begin, page_size));
    if (page == kNone) break;
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
  // A name may be of another sequence's page, lost since: nobody finds what is behind it.
  const auto page_of_last_name = [&] {
    const size_t last = names.size() - 1;
    const PageName predecessor = last > 0 ? names[last - 1] : kNoPage;
    const int32_t page = page_of(predecessor, tokens_of_page(last));
    return page != kNone && entry(page).name == names[last] ? page : kNone;
  };
  int32_t last = kNone;
  while (!names.empty() && (last = page_of_last_name()) == kNone) names.pop_back();
  while (names.size() < num_pages) {
    const size_t index = names.size();
    last = add_page(sequence.block_table()[index], last, tokens_of_page(index));
    names.push_back(entry(last).name);
  }
}

// Two sequences may have computed the same: the page of the first is the one that is found. What
// may run out of memory comes first: half of it leaves a page that cannot be found.
int32_t PrefixCache::add_page(int32_t page, int32_t before, std::span<const TokenId> tokens) {
  const PageName predecessor = before != kNone ? entry(before).name : kNoPage;
  const int32_t known = page_of(predecessor, tokens);
  if (known != kNone) return known;
  erase(page);
  Entry added = {.name = ++last_name_,
                 .predecessor = predecessor,
                 .tokens = {tokens.begin(), tokens.end()},
                 .is_coming = true,
                 .before = before};
  coming_.push_back(page);
  by_hash_.emplace(hash_of(predecessor, tokens), page);
  if (before != kNone) {
    added.next = std::exchange(entry(before).first_behind, page);
    if (added.next != kNone) entry(added.next).previous = page;
  }
  entry(page) = std::move(added);
  pool_.keep(page);
  return page;
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

// Whatever has nothing behind it goes first, so that pool_.lose(), which calls this, goes no deeper
// for many pages than for one.
void PrefixCache::erase(int32_t page) {
  if (entry(page).name == kNoPage) return;
  for (int32_t last = page;;) {
    while (entry(last).first_behind != kNone) last = entry(last).first_behind;
    const int32_t before = entry(last).before;
    erase_last(last);
    if (last == page) return;
    pool_.lose(last);
    last = before;
  }
}

void PrefixCache::erase_last(int32_t page) {
  Entry& lost = entry(page);
  const auto [begin, end] = by_hash_.equal_range(hash_of(lost.predecessor, lost.tokens));
  const auto found =
      std::find_if(begin, end, [&](const auto& candidate) { return candidate.second == page; });
  by_hash_.erase(found);
  if (lost.previous != kNone) {
    entry(lost.previous).next = lost.next;
  } else if (lost.before != kNone) {
    entry(lost.before).first_behind = lost.next;
  }
  if (lost.next != kNone) entry(lost.next).previous = lost.previous;
  lost = {};
}

}  // namespace tessera
