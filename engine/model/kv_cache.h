// The memory of the paged KV cache: the pages of all layers. Which are whose, PagePool knows.
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

class KvCache {
 public:
  KvCache(const ModelConfig& config, int64_t num_pages, int64_t page_size, Operations& operations);

  // Bytes of one token in all layers, keys and values.
  static size_t bytes_per_token(const ModelConfig& config, DType dtype);

  std::span<const KvPages> layers() const { return layers_; }
  KvLayout layout() const;
  size_t size_bytes() const { return buffer_.size_bytes(); }

 private:
  Buffer buffer_;
  std::vector<KvPages> layers_;
};

}  // namespace tessera
