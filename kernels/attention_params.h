// What attention needs to know about the sequences of one step and the paged KV cache.
#pragma once

#include <cstdint>

#include "kernels/tensor/tensor.h"

namespace tessera {

// The KV pages of one layer. A page holds page_size consecutive tokens of one sequence; within a
// page the rows of one KV head are contiguous, so that a head's tile is one straight copy.
// A step writes the rows of its own tokens and no others; see early reads in kernels/operations.h.
//
// Pages are in the activation type or in float8_e4m3. The latter have one scale for the keys of
// each KV head and one for its values: a key is scale * element. A key is rounded to the activation
// type and then stored as element = key / scale; beyond +-448 it becomes +-448, NaN stays NaN.
// Scales of single tokens or pages would gain nothing, and one per KV head has advantages:
//   - e4m3 is a floating-point format, so a scale only has to keep what matters between its
//     subnormals and 448;
//   - the bytes of a token depend on nothing but the token, so they are the same in chunks of any
//     size, in shared prefixes and in any company;
//   - kernels pay nothing: the scale of keys is a factor of the scale of scores, the scale of
//     values a factor of the output.
// Scales are powers of two. So key / scale and scale * element are exact in every type, and
// widening pages to 16 bits changes no number.
struct KvPages {
  Tensor keys;    // [num_pages, num_kv_heads, page_size, head_dim]
  Tensor values;  // same shape and type
  // Only float8_e4m3 pages have these: float32 [num_kv_heads], powers of two. Otherwise empty.
  Tensor key_scales = {};
  Tensor value_scales = {};

  bool is_fp8() const { return keys.dtype == DType::kFloat8E4M3; }
  int64_t num_pages() const { return keys.dim(0); }
  int64_t num_kv_heads() const { return keys.dim(1); }
  int64_t page_size() const { return keys.dim(2); }
  int64_t head_dim() const { return keys.dim(3); }
};

// A sequence with more query tokens than this is a prefill.
inline constexpr int64_t kMaxDecodeQueryLength = 8;

// Groups of decodes whose contexts begin with the same pages, as contexts behind one instruction
// do. Attention may read the shared tokens once for a whole group where that pays, which the
// literature calls cascade attention. Operations may ignore the groups: except for rounding,
// results do not depend on them.
struct SharedPrefixes {
  static constexpr int64_t kLengthUnit = 64;  // tokens; lengths are multiples of it and of pages

  Tensor group_starts;  // int32 [num_groups + 1]: a group's first query token, and the end of all
  Tensor lengths;       // int32 [num_groups], tokens that a group's contexts share; may be 0
  Tensor own_begins;    // int32 [num_decodes], for each decode the length of its group

  // The groups follow each other and have the query tokens of all decodes of the batch. Each decode
  // has one, which is not among the shared tokens, or, behind all decodes that share something,
  // none. 0: nothing is known about prefixes.
  int64_t num_groups = 0;
  // Tokens that need not be read again: over all groups, the length times one less than the
  // members.
  int64_t spared_tokens = 0;

  // Of the tensors, which views they are.
  friend bool operator==(const SharedPrefixes&, const SharedPrefixes&) = default;
};

// The sequences of one step. Their query tokens lie one sequence after the other in the step's
// token dimension; sequence s owns tokens [query_starts[s], query_starts[s + 1]), which are the
// last tokens of its context (causal attention is aligned at the end). Token t of a context lives
// in page block_tables[s][t / page_size], row t % page_size. A sequence may have no query tokens,
// or more of them than its context has tokens; a query that sees no key gets zeros.
//
// Entries of block_tables past the last used page, and rows past the context's end, may hold
// anything (tests poison them) and must not be used.
struct AttentionBatch {
  Tensor query_starts;     // int32 [num_sequences + 1]
  Tensor context_lengths;  // int32 [num_sequences], tokens, this step's included
  Tensor block_tables;     // int32 [num_sequences, max_pages_per_sequence]

  // What the host knows of these tensors, to size launches.
  int64_t num_sequences = 0;
  int64_t num_decodes = 0;  // leading sequences with at most kMaxDecodeQueryLength query tokens
  int64_t max_decode_query_length = 1;  // tokens, over the decodes
  int64_t max_query_length = 0;         // tokens, over all sequences
  int64_t max_context_length = 0;       // tokens, over all sequences
  // How much there is to do: the tokens of the decodes' contexts, and the pairs of a query of
  // another sequence and a key that it sees, without windows. 0: not known. Except for rounding,
  // results do not depend on these numbers.
  int64_t num_decode_keys = 0;
  int64_t num_prefill_scores = 0;

  SharedPrefixes shared = {};

  // Of the tensors, which views they are.
  friend bool operator==(const AttentionBatch&, const AttentionBatch&) = default;
};

struct AttentionParams {
  Tensor query;  // activation dtype [num_tokens, num_heads, head_dim]
  KvPages pages;
  AttentionBatch batch;
  float scale = 0.0f;          // of query . key, above 0, usually 1 / sqrt(head_dim)
  float softcap = 0.0f;        // scores become softcap * tanh(score / softcap); 0: as they are
  bool causal = true;          // a query sees its own token and those before; false: all tokens
  int64_t sliding_window = 0;  // tokens that a query sees, itself included; 0: all; needs causal
  Tensor workspace;            // at least Operations::attention_workspace_bytes, float32, scratch
};

}  // namespace tessera
