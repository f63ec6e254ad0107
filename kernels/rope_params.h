// What rotating queries and keys, normalised before where a model does so, and appending keys and
// values to the KV pages needs.
#pragma once

#include "kernels/attention_params.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

struct RopeStoreKvParams {
  Tensor query;                // out: activation [num_tokens, num_heads, head_dim]
  KvPages pages;               // out: the rows that kv_slots name
  Tensor qkv;                  // activation [num_tokens, (num_heads + 2 num_kv_heads) * head_dim]:
                               // q, k, v; unspecified afterwards where there is a qk_norm
  Tensor positions;            // int32 [num_tokens]
  Tensor kv_slots;             // int32 [num_tokens], page * page_size + row
  Tensor inverse_frequencies;  // float32 [head_dim / 2]; zeros rotate nothing
  Tensor qk_norm = {};         // float32 [2 head_dim]: RMSNorm's weights for each query head, for
                               // each key head; empty: no norm
  float norm_epsilon = 0.0f;
};

}  // namespace tessera
