#include "apps/batch/order.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tessera {

std::vector<uint32_t> longest_first(std::span<const BatchItem> items, int64_t max_tokens) {
  const auto length = [&](uint32_t index) {
    const int64_t asked = items[index].max_tokens == 0 ? max_tokens : items[index].max_tokens;
    return asked == 0 ? std::numeric_limits<int64_t>::max() : asked;
  };
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{}, length);
  return order;
}

}  // namespace tessera
