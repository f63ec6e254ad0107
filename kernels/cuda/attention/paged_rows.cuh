// The keys and values of one sequence and one KV head, read through its block table.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention/arguments.cuh"
#include "kernels/cuda/primitives/swizzled_rows.cuh"

namespace tessera {

// Holds few numbers and computes addresses anew for each copy: registers are what the prefill
// kernel is short of.
template <typename Element, int kHeadDim>
struct PagedRows {
  const AttentionArguments& arguments;
  int sequence;
  int kv_head;
  int end;  // tokens from this one on are not read

  // The page of `token`, or any number when its group is not read. Ask one tile ahead of the copy,
  // which cannot start before the entry has arrived.
  __device__ int32_t page_of(int token) const {
    if (token >= end) return 0;
    const uint32_t row = sequence * arguments.max_pages;
    return arguments.block_tables[row + arguments.page_size.divide(token)];
  }

  // One warp starts copying the tokens [token, token + kTokens), which lie within one group, to
  // rows from `row` on.
  template <int kTokens = kCopyTokens>
  __device__ void copy_group_async(const SwizzledRows<Element, kHeadDim>& key_rows,
                                   const SwizzledRows<Element, kHeadDim>& value_rows, int row,
                                   int token, int32_t page) const {
    const uint32_t page_size = arguments.page_size.divisor();
    const uint32_t page_row = token - arguments.page_size.divide(token) * page_size;
    const int64_t page_head = static_cast<int64_t>(page) * arguments.num_kv_heads + kv_head;
    const int64_t offset = (page_head * page_size + page_row) * kHeadDim;
    key_rows.template copy_rows_async<kTokens>(
        row, static_cast<const Element*>(arguments.keys) + offset, kHeadDim, end - token);
    value_rows.template copy_rows_async<kTokens>(
        row, static_cast<const Element*>(arguments.values) + offset, kHeadDim, end - token);
  }
};

}  // namespace tessera
