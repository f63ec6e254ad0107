#include "engine/model/shared_prefixes.h"

#include <algorithm>
#include <numeric>

#include "kernels/attention_params.h"

namespace tessera {
namespace {

// A group while sequences join it.
struct OpenGroup {
  std::span<const int32_t> pages;  // of its first sequence, as far as all share them
  int64_t num_sequences = 1;

  int64_t spared_pages() const { return std::ssize(pages) * (num_sequences - 1); }
};

// The pages in which nothing changes any more.
std::span<const int32_t> full_pages(const TokenChunk& decode, int64_t page_size) {
  return decode.block_table.first(static_cast<size_t>(decode.begin / page_size));
}

std::span<const int32_t> common_begin(std::span<const int32_t> a, std::span<const int32_t> b) {
  return a.first(static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin()));
}

}  // namespace

std::vector<int32_t> PrefixGroups::own_begins(int64_t num_decodes) const {
  std::vector<int32_t> begins;
  for (size_t group = 0; group < lengths.size(); ++group) {
    begins.resize(static_cast<size_t>(starts[group + 1]), lengths[group]);
  }
  begins.resize(static_cast<size_t>(num_decodes));
  return begins;
}

PrefixGroups group_by_prefix(std::span<const TokenChunk> decodes, int64_t page_size) {
  const int64_t unit_pages = std::lcm(page_size, SharedPrefixes::kLengthUnit) / page_size;
  const auto in_units = [&](std::span<const int32_t> pages) {
    return pages.first(pages.size() - pages.size() % static_cast<size_t>(unit_pages));
  };
  PrefixGroups groups;
  OpenGroup open;
  const auto close = [&] {
    const bool has_company = open.num_sequences > 1 && !open.pages.empty();
    const int64_t length = has_company ? std::ssize(open.pages) * page_size : 0;
    groups.spared_tokens += length * (open.num_sequences - 1);
    const auto end = static_cast<int32_t>(groups.starts.back() + open.num_sequences);
    // Sequences without company are one group.
    if (length == 0 && !groups.lengths.empty() && groups.lengths.back() == 0) {
      groups.starts.back() = end;
      return;
    }
    groups.starts.push_back(end);
    groups.lengths.push_back(static_cast<int32_t>(length));
  };
  for (size_t i = 0; i < decodes.size(); ++i) {
    const auto pages = in_units(full_pages(decodes[i], page_size));
    if (i == 0) {
      open = {.pages = pages};
      continue;
    }
    const OpenGroup joined = {.pages = in_units(common_begin(open.pages, pages)),
                              .num_sequences = open.num_sequences + 1};
    if (!joined.pages.empty() && joined.spared_pages() >= open.spared_pages()) {
      open = joined;
    } else {
      close();
      open = {.pages = pages};
    }
  }
  if (!decodes.empty()) close();
  return groups;
}

}  // namespace tessera
