// What Operations::rope_store_kv needs: it normalises queries and keys where a model does so,
// rotates them, and appends keys and values to the KV pages.
#pragma once

#include "kernels/attention_params.h"
#include "kernels/block_spec.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

struct RopeStoreKvParams {
  Tensor query;       // out: activation [num_tokens, num_heads, head_dim]
  KvPages pages;      // out: the rows that kv_slots name
  Tensor qkv;         // activation [num_tokens, (num_heads + 2 num_kv_heads) * head_dim]: q, k, v;
                      // unspecified afterwards where there is a qk_norm
                      // or pages are float8_e4m3
  Tensor positions;   // int32 [num_tokens]
  Tensor kv_slots;    // int32 [num_tokens], page * page_size + row
  Tensor rope_table;  // float32 [2, head_dim / 2]: inverse frequencies, and amplitudes, which
                      // multiply cosines and sines; 0 and 1 rotate nothing
  Tensor qk_norm = {};  // float32, RMSNorm's weights: [2 head_dim] for each query head and for each
                        // key head, or [(num_heads + num_kv_heads) head_dim] for all query heads as
                        // one row and for all key heads as one; empty: no norm
  float norm_epsilon = 0.0f;
  QueryScalingSpec query_scaling = {};

  int64_t num_heads() const { return query.dim(1); }
  // Elements of a query and of a key that are normalised together, where there is a qk_norm.
  bool norms_heads() const { return qk_norm.dim(0) == 2 * pages.head_dim(); }
  int64_t normed_query_size() const { return (norms_heads() ? 1 : num_heads()) * pages.head_dim(); }
  int64_t normed_key_size() const { return qk_norm.dim(0) - normed_query_size(); }
};

}  // namespace tessera
