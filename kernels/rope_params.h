// What rotating queries and keys and appending keys and values to the KV pages needs.
#pragma once

#include "kernels/attention_params.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

struct RopeStoreKvParams {
  Tensor query;                // out: activation [num_tokens, num_heads, head_dim]
  KvPages pages;               // out: the rows that kv_slots name
  Tensor qkv;                  // activation [num_tokens, (num_heads + 2 num_kv_heads) * head_dim]:
                               // q, k, v
  Tensor positions;            // int32 [num_tokens]
  Tensor kv_slots;             // int32 [num_tokens], page * page_size + row
  Tensor inverse_frequencies;  // float32 [head_dim / 2]; zeros rotate nothing
};

}  // namespace tessera
