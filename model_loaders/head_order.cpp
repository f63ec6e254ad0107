#include "model_loaders/head_order.h"

#include <algorithm>
#include <numeric>

namespace tessera {

std::vector<int64_t> head_order(const ModelConfig& config) {
  const int64_t stored_head_dim = config.stored_sizes().head_dim;
  const int64_t half = config.head_dim / 2;
  const int64_t stored_half = stored_head_dim / 2;
  const int64_t pairs = config.rotary_dim() / 2;
  std::vector<int64_t> order(static_cast<size_t>(2 * half), kZeroElement);
  for (int64_t i = 0; i < stored_half; ++i) {
    int64_t& first = order[static_cast<size_t>(i)];
    int64_t& second = order[static_cast<size_t>(half + i)];
    if (i >= pairs) {
      first = pairs + i;  // of those that stay, which begin at 2 pairs
      second = stored_half + i;
    } else if (config.rotary.is_interleaved) {
      first = 2 * i;
      second = 2 * i + 1;
    } else {
      first = i;
      second = pairs + i;
    }
  }
  const bool has_zeros = config.head_dim != stored_head_dim;
  return !has_zeros && std::ranges::is_sorted(order) ? std::vector<int64_t>() : order;
}

std::vector<int64_t> query_order(const ModelConfig& config) {
  const PaddableSizes stored = config.stored_sizes();
  if (stored.num_heads == config.num_heads) return {};
  std::vector<int64_t> of_head = head_order(config);
  if (of_head.empty()) {
    of_head.resize(static_cast<size_t>(config.head_dim));
    std::iota(of_head.begin(), of_head.end(), 0);
  }
  std::vector<int64_t> order;
  for (int64_t head = 0; head < config.num_heads / config.num_kv_heads; ++head) {
    const bool is_stored = head < stored.num_heads / config.num_kv_heads;
    for (const int64_t element : of_head) {
      const bool is_zero = !is_stored || element == kZeroElement;
      order.push_back(is_zero ? kZeroElement : head * stored.head_dim + element);
    }
  }
  return order;
}

std::vector<int64_t> zeros_behind(int64_t num_stored, int64_t count) {
  if (num_stored == count) return {};
  std::vector<int64_t> order(static_cast<size_t>(count), kZeroElement);
  std::iota(order.begin(), order.begin() + num_stored, 0);
  return order;
}

}  // namespace tessera
