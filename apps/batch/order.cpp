#include "apps/batch/order.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tessera {

int64_t answer_limit(const BatchItem& item, int64_t max_tokens) {
  return item.max_tokens == 0 ? max_tokens : item.max_tokens;
}

std::vector<uint32_t> longest_first(std::span<const BatchItem> items, int64_t max_tokens) {
  const auto length = [&](uint32_t index) {
    const int64_t limit = answer_limit(items[index], max_tokens);
    return limit == 0 ? std::numeric_limits<int64_t>::max() : limit;
  };
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{}, length);
  return order;
}

}  // namespace tessera
