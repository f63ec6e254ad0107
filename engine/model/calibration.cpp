// Scales of keys and values in float8_e4m3 (ModelRunner::choose_kv_scales).
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/model/host_tensor.h"
#include "engine/model/model_runner.h"
#include "engine/model/stop_scope.h"
#include "model_loaders/kv_scales.h"

namespace tessera {
namespace {

// Where the largest magnitude of the calibration comes to lie, or below, by less than a factor of
// two. Of the 18 binary orders of magnitude of e4m3, 15 of them in full precision, this gives up 3
// to 4.
constexpr float kCalibratedLargest = kLargestFloat8E4M3 / 8.0f;

// All over the vocabulary, the same on every run.
std::vector<TokenId> calibration_tokens(int64_t count, int64_t vocab_size) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: evenly scattered
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t scattered = (static_cast<uint64_t>(i) * kStep) >> 33;
    tokens.push_back(static_cast<TokenId>(scattered % static_cast<uint64_t>(vocab_size)));
  }
  return tokens;
}

// The smallest power of two that is at least `scale`, above 0; none whose inverse is not one too.
float power_of_two_from(float scale) {
  constexpr float kSmallest = 0x1p-100f;
  constexpr float kLargest = 0x1p100f;
  scale = std::clamp(scale, kSmallest, kLargest);
  int exponent = 0;
  const float fraction = std::frexp(scale, &exponent);  // from 1/2 to below 1
  return std::ldexp(1.0f, fraction == 0.5f ? exponent - 1 : exponent);
}

// The largest finite magnitude of each KV head, in the first num_tokens of the pages' tokens.
//   pages on the host [num_pages, num_kv_heads, page_size, head_dim]
template <typename T>
std::vector<float> largest_of_heads(const Tensor& pages, int64_t num_tokens) {
  std::vector<float> largest(static_cast<size_t>(pages.dim(1)), 0.0f);
  const int64_t page_size = pages.dim(2);
  const T* next = pages.as<T>();
  for (int64_t page = 0; page < pages.dim(0); ++page) {
    const int64_t used = std::clamp<int64_t>(num_tokens - page * page_size, 0, page_size);
    for (float& of_head : largest) {
      for (int64_t i = 0; i < used * pages.dim(3); ++i) {
        const float magnitude = std::abs(to_float(next[i]));
        if (std::isfinite(magnitude)) of_head = std::max(of_head, magnitude);
      }
      next += page_size * pages.dim(3);
    }
  }
  return largest;
}

std::vector<float> largest_of_heads(const Tensor& pages, int64_t num_tokens, Device& device) {
  std::vector<float> storage(ceil_divide(pages.size_bytes(), sizeof(float)));
  const Tensor host{storage.data(), pages.dtype, DeviceType::kCpu, pages.shape};
  device.download(host, pages);
  switch (pages.dtype) {
    case DType::kBFloat16:
      return largest_of_heads<BFloat16>(host, num_tokens);
    case DType::kFloat16:
      return largest_of_heads<Float16>(host, num_tokens);
    default:
      return largest_of_heads<float>(host, num_tokens);
  }
}

}  // namespace

void ModelRunner::choose_kv_scales(const Checkpoint& checkpoint, const StopQuestion& should_stop) {
  if (!cache_.is_fp8()) return;
  const StopScope scope(backend_->device(), should_stop);
  std::vector<float> scales = read_kv_scales(checkpoint, config_);
  const bool are_calibrated = scales.empty();
  if (are_calibrated) scales = calibrated_kv_scales();
  for (float& scale : scales) scale = power_of_two_from(scale);
  spdlog::info("KV cache: float8_e4m3, scales {} between {} and {}",
               are_calibrated ? "from a calibration," : "of the checkpoint,",
               *std::ranges::min_element(scales), *std::ranges::max_element(scales));
  const Shape shape{config_.num_layers, 2, config_.num_kv_heads};
  cache_.set_scales(host_tensor(scales, shape), backend_->device());
}

std::vector<float> ModelRunner::calibrated_kv_scales() {
  const std::vector<KvPages> pages = cache_.calibration_pages();
  const int64_t num_tokens =
      std::min({kCalibrationTokens, limits_.context_size, pages.front().num_pages() * page_size_});
  const std::vector<TokenId> prompt = calibration_tokens(num_tokens, config_.vocab_size);
  std::vector<int32_t> block_table(static_cast<size_t>(pages.front().num_pages()));
  std::iota(block_table.begin(), block_table.end(), 0);
  Transformer transformer(weights_, pages, buffers_.activations, backend_->operations());
  TokenChunk chunk = {.tokens = prompt, .block_table = block_table};
  for (; chunk.begin < num_tokens; chunk.begin = chunk.end()) {
    chunk.num_tokens = std::min(num_tokens - chunk.begin, limits_.max_tokens);
    transformer.fill_cache(buffers_.inputs.prepare({&chunk, 1}, drawn_, backend_->operations()));
  }
  std::vector<float> scales;
  for (const KvPages& layer : pages) {
    for (const Tensor& tensor : {layer.keys, layer.values}) {
      for (const float largest : largest_of_heads(tensor, num_tokens, backend_->device())) {
        scales.push_back(largest > 0.0f ? largest / kCalibratedLargest : 1.0f);
      }
    }
  }
  return scales;
}

}  // namespace tessera
