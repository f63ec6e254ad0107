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
  QkNorm qk_norm_kind = QkNorm::kNone;
  // Its weights, float32, of queries, then of keys: of kPerHead [2 head_dim], of the other kinds
  // [(num_heads + num_kv_heads) head_dim]; of kNone empty.
  Tensor qk_norm = {};
  float norm_epsilon = 0.0f;
  QueryScalingSpec query_scaling = {};

  int64_t num_heads() const { return query.dim(1); }
  // Elements of qk_norm.
  int64_t query_norm_size() const {
    return (qk_norm_kind == QkNorm::kPerHead ? 1 : num_heads()) * pages.head_dim();
  }
  int64_t key_norm_size() const {
    return (qk_norm_kind == QkNorm::kPerHead ? 1 : pages.num_kv_heads()) * pages.head_dim();
  }
};

}  // namespace tessera
