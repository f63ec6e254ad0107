#include "kernels/cuda/attention/prefill_fp8/arrange.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/wgmma_fp8.cuh"

namespace tessera {
namespace {

constexpr int kThreads = 256;
constexpr int kRowWords = kFp8HeadDim / 4;
constexpr int kRowLanes = 16;  // lanes that share a row of queries, 8 elements each
constexpr int kRowsAtOnce = kThreads / kRowLanes;
constexpr int kRowPasses = 4;  // rows per lane; the loads of all are started first
constexpr int kBlockRows = kRowsAtOnce * kRowPasses;

// kBlockRows rows, each 128 elements of one token and head.
template <typename Element>
__device__ __forceinline__ void arrange_queries(const AttentionArguments& arguments,
                                                const float* key_scales, int64_t first_row,
                                                const Fp8Arrangement& arranged) {
  const int64_t num_rows = int64_t{arguments.num_tokens} * arguments.num_heads;
  const int lane = threadIdx.x % kRowLanes;
  Vector<Element, 8> loaded[kRowPasses];
#pragma unroll
  for (int pass = 0; pass < kRowPasses; ++pass) {
    const int64_t row = min(first_row + pass * kRowsAtOnce + threadIdx.x / kRowLanes, num_rows - 1);
    loaded[pass] =
        load_vector<8>(static_cast<const Element*>(arguments.query), row * kRowLanes + lane);
  }
#pragma unroll
  for (int pass = 0; pass < kRowPasses; ++pass) {
    const int64_t row = first_row + pass * kRowsAtOnce + threadIdx.x / kRowLanes;
    float values[8];
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      values[i] = as_float(loaded[pass].values[i]);
      largest = fmaxf(largest, fabsf(values[i]));
    }
#pragma unroll
    for (int distance = kRowLanes / 2; distance > 0; distance /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(kFullWarp, largest, distance));
    }
    if (row >= num_rows) continue;
    // The power of two that brings the largest element to 224 ... 448; 2^(exponent - 127).
    const int exponent =
        min(max(static_cast<int>(__float_as_uint(largest / 448.0f) >> 23) + 1, 1), 253);
    const float inverse = __uint_as_float(static_cast<uint32_t>(254 - exponent) << 23);
#pragma unroll
    for (float& value : values) value *= inverse;
    reinterpret_cast<uint2*>(arranged.queries)[row * kRowLanes + lane] =
        make_uint2(pack_e4m3(values[0], values[1], values[2], values[3]),
                   pack_e4m3(values[4], values[5], values[6], values[7]));
    if (lane == 0) {
      const int kv_head = static_cast<int>(row % arguments.num_heads) / arguments.heads_per_kv_head;
      const float scale = __uint_as_float(static_cast<uint32_t>(exponent) << 23);
      // Above 0, so that a hidden key's score stays -inf.
      arranged.query_factors[row] =
          fmaxf(arguments.scale_log2 * key_scales[kv_head] * scale, 1.2e-38f);
    }
  }
}

// One tile of 128 tokens, sequence and KV head.
__device__ __forceinline__ void arrange_tile(const AttentionArguments& arguments,
                                             const Fp8Arrangement& arranged, int index) {
  __shared__ uint32_t transposed[4][32][kFp8TileKeys / 4 + 1];  // dim 4 i + j at [j][i]
  const int kv_head = index % arguments.num_kv_heads;
  const int64_t tile = index / arguments.num_kv_heads;
  const int sequence = static_cast<int>(tile / arranged.tiles_per_sequence);
  const int context_length = arguments.context_lengths[sequence];
  if (kv_head == 0 && threadIdx.x == 0) arranged.tables[tile] = static_cast<int32_t>(tile);
  const int first_token = static_cast<int>(tile % arranged.tiles_per_sequence) * kFp8TileKeys;
  if (first_token >= context_length) return;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int page_size = arguments.page_size.divisor();
  // Row of a token in the pages, -1 behind the context's end.
  const auto row_of = [&](int tile_token) -> int64_t {
    const int token = first_token + tile_token;
    if (token >= context_length) return -1;
    const int page_index = arguments.page_size.divide(token);
    const int64_t page =
        arguments.block_tables[int64_t{sequence} * arguments.max_pages + page_index];
    return (page * arguments.num_kv_heads + kv_head) * page_size + (token - page_index * page_size);
  };
  const int64_t to = (tile * arguments.num_kv_heads + kv_head) * (kFp8TileKeys * kRowWords);
  constexpr int kRowVectors = kFp8HeadDim / sizeof(uint4);
  auto* const keys = reinterpret_cast<uint4*>(arranged.keys) + to / 4;
  auto* const values = reinterpret_cast<uint32_t*>(arranged.values) + to;
#pragma unroll
  for (int i = threadIdx.x; i < kFp8TileKeys * kRowVectors; i += kThreads) {
    const int64_t row = row_of(i / kRowVectors);
    keys[i] = row < 0
                  ? make_uint4(0, 0, 0, 0)
                  : static_cast<const uint4*>(arguments.keys)[row * kRowVectors + i % kRowVectors];
  }
  const auto load_word = [&](int tile_token) -> uint32_t {
    const int64_t row = row_of(tile_token);
    return row < 0 ? 0 : static_cast<const uint32_t*>(arguments.values)[row * kRowWords + lane];
  };
#pragma unroll
  for (int quad = warp; quad < kFp8TileKeys / 4; quad += kThreads / 32) {
    const int token = quad / 4 * 16 + quad % 4 * 2;
    const uint32_t a = load_word(token);
    const uint32_t b = load_word(token + 1);
    const uint32_t c = load_word(token + 8);
    const uint32_t d = load_word(token + 9);
    const uint32_t ab_low = __byte_perm(a, b, 0x5140);  // a0 b0 a1 b1
    const uint32_t ab_high = __byte_perm(a, b, 0x7362);
    const uint32_t cd_low = __byte_perm(c, d, 0x5140);
    const uint32_t cd_high = __byte_perm(c, d, 0x7362);
    transposed[0][lane][quad] = __byte_perm(ab_low, cd_low, 0x5410);
    transposed[1][lane][quad] = __byte_perm(ab_low, cd_low, 0x7632);
    transposed[2][lane][quad] = __byte_perm(ab_high, cd_high, 0x5410);
    transposed[3][lane][quad] = __byte_perm(ab_high, cd_high, 0x7632);
  }
  __syncthreads();
#pragma unroll
  for (int row = warp; row < kFp8HeadDim; row += kThreads / 32) {
    values[row * (kFp8TileKeys / 4) + lane] = transposed[row % 4][row / 4][lane];
  }
}

// The first num_tiles blocks arrange pages, one tile of one KV head each; the other blocks arrange
// queries.
template <typename Element>
__global__ void __launch_bounds__(kThreads)
    arrange_kernel(const __grid_constant__ AttentionArguments arguments, const float* key_scales,
                   const __grid_constant__ Fp8Arrangement arranged, int num_tiles) {
  const int block = static_cast<int>(blockIdx.x);
  if (block < num_tiles) {
    arrange_tile(arguments, arranged, block);
  } else {
    arrange_queries<Element>(arguments, key_scales, int64_t{block - num_tiles} * kBlockRows,
                             arranged);
  }
}

}  // namespace

template <typename Element>
void launch_arrange_fp8(const AttentionArguments& arguments, const float* key_scales,
                        int num_sequences, const Fp8Arrangement& arranged, bool with_queries,
                        cudaStream_t stream) {
  const int64_t rows = with_queries ? int64_t{arguments.num_tokens} * arguments.num_heads : 0;
  const int64_t tiles =
      int64_t{num_sequences} * arranged.tiles_per_sequence * arguments.num_kv_heads;
  const int64_t blocks = tiles + ceil_divide<int64_t>(rows, kBlockRows);
  if (blocks == 0) return;
  arrange_kernel<Element><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      arguments, key_scales, arranged, static_cast<int>(tiles));
  CUDA_CHECK(cudaGetLastError());
}

template void launch_arrange_fp8<__nv_bfloat16>(const AttentionArguments&, const float*, int,
                                                const Fp8Arrangement&, bool, cudaStream_t);
template void launch_arrange_fp8<__half>(const AttentionArguments&, const float*, int,
                                         const Fp8Arrangement&, bool, cudaStream_t);

}  // namespace tessera
