#include "model_loaders/head_order.h"

#include <algorithm>

namespace tessera {

std::vector<int64_t> head_order(const ModelConfig& config) {
  const int64_t half = config.head_dim / 2;
  const int64_t pairs = config.rotary_dim() / 2;
  std::vector<int64_t> order(static_cast<size_t>(2 * half));
  for (int64_t i = 0; i < half; ++i) {
    int64_t& first = order[static_cast<size_t>(i)];
    int64_t& second = order[static_cast<size_t>(half + i)];
    if (i >= pairs) {
      first = pairs + i;  // of those that stay, which begin at 2 pairs
      second = half + i;
    } else if (config.rotary.is_interleaved) {
      first = 2 * i;
      second = 2 * i + 1;
    } else {
      first = i;
      second = pairs + i;
    }
  }
  return std::ranges::is_sorted(order) ? std::vector<int64_t>() : order;
}

}  // namespace tessera
