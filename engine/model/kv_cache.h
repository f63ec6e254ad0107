// The memory of the paged KV cache: the pages of all layers. PagePool knows who holds which page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention_params.h"
#include "kernels/operations.h"
#include "kernels/tensor/buffer.h"
#include "model_loaders/kv_file_header.h"
#include "model_loaders/model_config.h"

namespace tessera {

// Tokens from whose keys and values scales are chosen, where the checkpoint has none
// (engine/model/calibration.cpp).
inline constexpr int64_t kCalibrationTokens = 512;

class KvCache {
 public:
  // Pages of float8_e4m3 have scales of 1 until set_scales().
  KvCache(const ModelConfig& config, int64_t num_pages, int64_t page_size, KvDType kv_dtype,
          Operations& operations);

  // Bytes of one token in all layers, keys and values.
  static size_t bytes_per_token(const ModelConfig& config, DType dtype);

  // Bytes of calibration_pages(). A cache of float8_e4m3 pages takes at least as many, even if its
  // own pages need fewer.
  static size_t calibration_bytes(const ModelConfig& config, int64_t num_pages, int64_t page_size,
                                  DType activation);

  std::span<const KvPages> layers() const { return layers_; }
  KvLayout layout() const;
  bool is_fp8() const { return layers_.front().is_fp8(); }
  size_t size_bytes() const { return buffer_.size_bytes() + scales_buffer_.size_bytes(); }

  // Sets the scales of float8_e4m3 pages: of each layer, first of keys, then of values.
  //   scales float32 [num_layers, 2, num_kv_heads] on the host, powers of two
  void set_scales(const Tensor& scales, Device& device);
  // The same in one list; empty where pages are of another type.
  const std::vector<float>& scales() const { return host_scales_; }

  // To be used while the cache holds no sequence: the same memory as pages of the activation type,
  // for the tokens of a calibration or for as many as fit.
  std::vector<KvPages> calibration_pages() const;

 private:
  struct Sizes {
    int64_t num_layers, num_pages, num_kv_heads, page_size, head_dim;
    DType dtype;
  };
  static std::vector<KvPages> lay_out(Arena& arena, const Sizes& sizes);
  void take_scales(Device& device);

  Sizes calibration_;
  Buffer buffer_;
  Buffer scales_buffer_;
  Tensor scales_;  // float32 [num_layers, 2, num_kv_heads], of float8_e4m3 pages
  std::vector<float> host_scales_;
  std::vector<KvPages> layers_;
};

}  // namespace tessera
