// The paged KV cache: one pool of pages for all layers, and the pages each sequence holds.
//
// A page holds page_size consecutive tokens of one sequence (Kwon et al. 2023, PagedAttention), so
// sequences grow without moving and memory is lost only in each one's last page.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention_params.h"
#include "kernels/operations.h"
#include "model_loaders/model_config.h"

namespace tessera {

// Page numbers of one sequence, in the order of its tokens.
using BlockTable = std::vector<int32_t>;

class KvCache {
 public:
  KvCache(const ModelConfig& config, int64_t num_pages, int64_t page_size, Operations& operations);

  // Bytes of one token in all layers, keys and values.
  static size_t bytes_per_token(const ModelConfig& config, DType dtype);

  const KvPages& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }
  int64_t page_size() const { return page_size_; }
  int64_t num_free_pages() const { return static_cast<int64_t>(free_pages_.size()); }
  size_t size_bytes() const { return buffer_.size_bytes(); }

  // Pages `table` lacks to hold num_tokens.
  int64_t pages_missing(const BlockTable& table, int64_t num_tokens) const;

  // Takes pages until `table` holds num_tokens. Throws when fewer than pages_missing() are free.
  void grow(BlockTable& table, int64_t num_tokens);

  // Gives back the pages beyond those that num_tokens need; 0 gives back all.
  void shrink(BlockTable& table, int64_t num_tokens);

  // Where token `position` of a sequence lies: page * page_size + row.
  int32_t slot(const BlockTable& table, int64_t position) const;

 private:
  Buffer buffer_;
  std::vector<KvPages> layers_;
  std::vector<int32_t> free_pages_;  // a stack
  int64_t page_size_;
};

}  // namespace tessera
