// Attention inputs as the engine would lay them out, with everything poisoned that must not be
// read: pages in random physical order, unused pages and page tails NaN and infinite, block-table
// entries past the last page absurd, output and workspace NaN.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/attention/reference_attention.h"
#include "tests/kernels/for_each_backend.h"

namespace tessera {

struct SequenceSize {
  int64_t query_length;    // tokens
  int64_t context_length;  // tokens, the queries included unless they are more
};

// Decodes that follow each other and have the same pages in front.
struct SharedSize {
  int64_t num_decodes;
  int64_t length;  // tokens
};

struct AttentionSize {
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 64;
  int64_t page_size = 64;  // tokens
  double scale = 0.0;      // 0: 1 / sqrt(head_dim)
  double softcap = 0.0;    // 0: none
  bool causal = true;
  int64_t sliding_window = 0;  // tokens; 0: all
  double query_deviation = 1.0;

  // Leading sequences with at most so many query tokens are decodes; -1: all are prefills.
  int64_t max_decode_query_length = kMaxDecodeQueryLength;
  bool pages_in_order = false;
  DType kv_dtype = DType::kFloat32;  // keys and values are numbers that this type has
  bool fp8_pages = false;            // pages of float8_e4m3, every KV head with scales of its own
  // Groups of the decodes, as SharedPrefixes has them, or none. That they spare enough is
  // pretended, so that small ones are computed as large ones would be.
  std::vector<SharedSize> shared = {};
};

class AttentionProblem {
 public:
  AttentionProblem(Backend& backend, const AttentionSize& size,
                   const std::vector<SequenceSize>& sequences, uint64_t seed = 1);

  // Runs the operation into a poisoned output.
  DeviceTensor run() const;
  // run(), compared with the reference by both rules of tolerance.h.
  void check() const;
  // Runs the operation so often and compares its outputs bit by bit.
  void check_repeats(int64_t repeats) const;

  AttentionParams params() const;

 private:
  std::string description() const;
  ReferenceAttentionParams reference_params() const;
  void run_into(const Tensor& out) const;
  void share_prefixes(std::vector<std::vector<int32_t>>& pages);
  double lost_weights(size_t index) const;
  void check_sequence(size_t index, const Tensor& out) const;

  Backend& backend_;
  AttentionSize size_;
  std::vector<SequenceSize> sequence_sizes_;
  std::vector<ReferenceSequence> sequences_;
  int64_t num_tokens_ = 0;
  int64_t num_decodes_ = 0;
  int64_t max_decode_query_length_ = 1;
  int64_t max_query_length_ = 0;
  int64_t max_context_length_ = 0;
  int64_t num_decode_keys_ = 0;
  int64_t num_prefill_scores_ = 0;  // roughly
  DeviceTensor query_, keys_, values_;
  DeviceTensor key_scales_, value_scales_;  // of float8_e4m3 pages
  DeviceTensor query_starts_, context_lengths_, block_tables_;
  DeviceTensor group_starts_, shared_lengths_, own_begins_;
  DeviceTensor workspace_;
};

}  // namespace tessera
