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
// find none of them in a cache. Pages are in random physical order across all sets.
//
// The same memory serves standard attention, which reads it under its own, contiguous layout: there
// the numbers mean other queries, keys and values, as random as the first.
class AttentionInputs {
 public:
  AttentionInputs(Operations& operations, const NormalPool& pool, const AttentionHeads& heads,
                  const AttentionCase& attention_case, const PageLayout& layout);

  int64_t num_sets() const { return num_sets_; }
  const Tensor& out() const { return out_; }  // [num_tokens, num_heads, head_dim]
  Tensor standard_out() const;  // the same memory [batch_size, num_heads, query_length, head_dim]
  size_t workspace_bytes() const { return workspace_bytes_; }

  AttentionParams params(int64_t set) const;
  // Without scratch.
  StandardAttentionParams standard_params(int64_t set) const;

  // The exact result of a row over the keys of set 0, computed from the numbers of the pool in
  // double precision: [head_dim]. `standard`: under the layout of standard_params.
  std::vector<double> exact_row(const AttentionRow& row, bool standard) const;
  // The same row of out(), from the device.
  std::vector<double> computed_row(const AttentionRow& row, bool standard) const;

 private:
  // In units of head_dim elements: of the row in the queries, and of a token in the keys of set 0.
  int64_t query_row(const AttentionRow& row, bool standard) const;
  int64_t key_row(const AttentionRow& row, int64_t token, bool standard) const;

  Tensor take(std::string_view name, DType dtype, const Shape& shape);
  void upload_integers(const Tensor& tensor, const std::vector<int32_t>& values);

  Operations& operations_;
  const NormalPool& pool_;
  AttentionHeads heads_;
  AttentionCase case_;
  int64_t page_size_;
  int64_t pages_per_sequence_;
  int64_t num_sets_;
  std::vector<int32_t> block_tables_;  // [num_sets, batch_size, pages_per_sequence]

  std::vector<Buffer> buffers_;
  Tensor query_, out_, keys_, values_;
  Tensor query_starts_, context_lengths_, device_block_tables_;
  size_t workspace_bytes_ = 0;
  Tensor workspace_;
};

}  // namespace tessera
