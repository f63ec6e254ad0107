// Descriptions of tensors for the copy engine (TMA, sm_90), which fetches boxes of them.
//
// A box arrives in shared memory as a panel, or as several (primitives/panels.h), of rows of 64
// elements where not said otherwise: 128 bytes, which is the swizzle that wgmma reads. The
// destination is 1024-byte aligned. What a box reaches beyond the tensor's edges arrives as zeros.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/tensor/tensor.h"

namespace tessera {

// Columns of a box, or of a panel of whole rows: what the 128-byte swizzle allows of 16-bit
// elements.
inline constexpr int kBoxColumns = 64;

// Boxes of kBoxColumns x box_tokens of one page and KV head. Coordinates: column, token of the
// page, KV head, page.
//   pages bfloat16 or float16 [num_pages, num_kv_heads, page_size, head_dim]
//   head_dim a multiple of 8; box_tokens <= 256 and a divisor of page_size
// Throws Error when the driver refuses, as the others do.
CUtensorMap make_page_tensor_map(const Tensor& pages, int box_tokens);

// Boxes of box_tokens whole rows of one page and KV head, in panels as wide as the rows allow.
// Coordinates: 0, token of the page, 0, KV head, page.
//   head_dim a multiple of 16; pages and box_tokens as above
CUtensorMap make_page_rows_tensor_map(const Tensor& pages, int box_tokens);

// Boxes of box_rows rows of a weight matrix and box_features of their features, which arrive as
// panels of 64 features, one panel after the other. Coordinates: 0, row, panel.
//   weight bfloat16 or float16 [out_features, in_features], in_features a multiple of 64
//   box_rows <= 256; box_features a multiple of 64
CUtensorMap make_weight_tensor_map(const Tensor& weight, int box_rows, int box_features);

// How many bytes of a row the L2 cache fetches where it lacks some.
enum class L2Fetch : uint8_t { k128, k256 };

// Boxes of kBoxColumns x box_rows. Coordinates: column, row.
//   matrix bfloat16 or float16 [rows, columns]; columns a multiple of 8; box_rows <= 256
CUtensorMap make_matrix_tensor_map(const Tensor& matrix, int box_rows,
                                   L2Fetch fetch = L2Fetch::k128);

// Boxes of kBoxColumns of one head and box_tokens tokens. Coordinates: column, head, token.
//   query bfloat16 or float16 [num_tokens, num_heads, head_dim]; box_tokens <= 256
CUtensorMap make_query_tensor_map(const Tensor& query, int box_tokens);

}  // namespace tessera
