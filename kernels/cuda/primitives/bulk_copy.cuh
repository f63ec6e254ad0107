// Copies into shared memory by the copy engine (sm_90): one thread starts them, and they complete
// on an mbarrier that was told how many bytes to expect.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/cuda/primitives/async_copy.cuh"

namespace tessera {

// Reads a tensor map before its first use.
__device__ inline void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// What L2 gives up first: weights, keys and values, most of which a step reads once. Left to itself
// it gives up the tokens, which every block reads for every tile. With weights given up first,
// decoding 16, 32 and 64 sequences of an 8B model gained 4.6, 5.5 and 3.8 % (H200, token ring of 48
// KiB), 1 and 8 in the fused kernel 0.4 and 0.8 %; with keys and values besides 8, 16 and 64
// sequences of 1,024 tokens gained 1.5, 1.7 and 2.0 %, one of 8,192 1.5 %.
__device__ inline uint64_t evict_first_policy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline uint64_t evict_normal_policy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// `bytes` contiguous bytes, a multiple of 16; both addresses 16-byte aligned.
__device__ inline void copy_bulk_async(void* shared, const void* global, uint32_t bytes,
                                       uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

// Orders what this thread has read and written in shared memory before what the copy engine and the
// tensor cores (wgmma) do there after a signal that follows. Loads that a warp has asked for may
// otherwise still be on their way when a copy overwrites what they read.
__device__ inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The map's box from this corner of a page pool; see make_page_tensor_map().
__device__ inline void copy_page_box_async(void* shared, const CUtensorMap* map, uint64_t* barrier,
                                           int column, int token, int kv_head, int page) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(token), "r"(kv_head), "r"(page)
      : "memory");
}

// The map's box from this row of a page and KV head; see make_page_rows_tensor_map().
__device__ inline void copy_page_rows_async(void* shared, const CUtensorMap* map, uint64_t* barrier,
                                            int token, int kv_head, int page, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %3, %5, %6}], [%2], %7;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(0), "r"(token), "r"(kv_head), "r"(page),
      "l"(policy)
      : "memory");
}

// The map's box from this row and panel of a weight matrix; see make_weight_tensor_map().
__device__ inline void copy_weight_box_async(void* shared, const CUtensorMap* map,
                                             uint64_t* barrier, int row, int panel,
                                             uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(0), "r"(row), "r"(panel), "l"(policy)
      : "memory");
}

// The map's box from this corner of a matrix; see make_matrix_tensor_map().
__device__ inline void copy_matrix_box_async(void* shared, const CUtensorMap* map,
                                             uint64_t* barrier, int column, int row,
                                             uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "l"(policy)
      : "memory");
}

// The same box to this place in the first two blocks of the cluster; it counts at this barrier in
// both.
__device__ inline void copy_matrix_box_to_pair_async(void* shared, const CUtensorMap* map,
                                                     uint64_t* barrier, int column, int row) {
  constexpr uint16_t kBothBlocks = 0b11;
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "h"(kBothBlocks)
      : "memory");
}

// The map's box from this corner of a query tensor; see make_query_tensor_map().
__device__ inline void copy_query_box_async(void* shared, const CUtensorMap* map, uint64_t* barrier,
                                            int column, int head, int token) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(head), "r"(token)
      : "memory");
}

}  // namespace tessera
