// The tensors of one timed attention, as the engine would lay them out.
#pragma once

#include <random>

#include "engine/benchmark/attention_case.h"
#include "engine/benchmark/normal_pool.h"
#include "kernels/operations.h"
#include "kernels/standard_attention.h"

namespace tessera {

// One query of one head of one sequence.
struct AttentionRow {
  int64_t sequence = 0;
  int64_t query = 0;  // of the step
  int64_t head = 0;
};

// Random queries and several sets of random keys and values: launches that take the sets in turn
// find none of them in a cache. Pages are in random physical order across all sets. Pages of
// float8_e4m3 have different scales for neighbouring KV heads, and for keys and for values.
//
// Standard attention reads the same memory under a contiguous layout of its own. There the numbers
// mean other queries, keys and values, as random as the first. It cannot read float8_e4m3.
class AttentionInputs {
 public:
  // Both pools must outlive the inputs. query_pool has the type of queries, kv_pool that of pages.
  AttentionInputs(Operations& operations, const NormalPool& query_pool, const NormalPool& kv_pool,
                  const AttentionHeads& heads, const AttentionCase& attention_case,
                  const PageLayout& layout);

  int64_t num_sets() const { return num_sets_; }
  const Tensor& out() const { return out_; }  // [num_tokens, num_heads, head_dim]
  Tensor standard_out() const;  // the same memory [batch_size, num_heads, query_length, head_dim]
  size_t workspace_bytes() const { return workspace_bytes_; }

  AttentionParams params(int64_t set) const;
  // Without scratch.
  StandardAttentionParams standard_params(int64_t set) const;

  // The exact result of a row over the keys of set 0, computed from the numbers of the pools in
  // double precision: [head_dim]. `standard`: under the layout of standard_params.
  std::vector<double> exact_row(const AttentionRow& row, bool standard) const;
  // The same row of out(), from the device.
  std::vector<double> computed_row(const AttentionRow& row, bool standard) const;

 private:
  // Where in their pool the keys and the values begin.
  static constexpr int64_t kKeysOffset = NormalPool::kPeriod / 3;
  static constexpr int64_t kValuesOffset = NormalPool::kPeriod / 3 * 2;

  // In units of head_dim elements: of the row in the queries, and of a token in the keys of set 0.
  int64_t query_row(const AttentionRow& row, bool standard) const;
  int64_t key_row(const AttentionRow& row, int64_t token, bool standard) const;
  int64_t kv_head(const AttentionRow& row) const;
  int64_t num_pages() const;  // of all sets

  void take_queries();
  void take_pages();
  void take_batch(bool in_order);
  void take_workspace();
  Tensor take(std::string_view name, DType dtype, const Shape& shape);
  // A tensor that holds `values`.
  template <typename T>
  Tensor take_values(std::string_view name, const std::vector<T>& values, const Shape& shape);

  Operations& operations_;
  const NormalPool& query_pool_;
  const NormalPool& kv_pool_;
  AttentionHeads heads_;
  AttentionCase case_;
  KvDType kv_dtype_;
  int64_t page_size_;
  int64_t pages_per_sequence_;
  int64_t num_sets_;
  std::vector<int32_t> block_tables_;             // [num_sets, batch_size, pages_per_sequence]
  std::vector<float> key_scales_, value_scales_;  // [num_kv_heads], 1 where pages have none

  std::vector<Buffer> buffers_;
  Tensor query_, out_;
  KvPages pages_;
  Tensor query_starts_, context_lengths_, device_block_tables_;
  size_t workspace_bytes_ = 0;
  Tensor workspace_;
};

}  // namespace tessera
