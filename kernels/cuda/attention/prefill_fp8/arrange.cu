#include "kernels/cuda/attention/prefill_fp8/arrange.h"
#include "kernels/cuda/device/cuda_check.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;
constexpr int kRowWords = kFp8HeadDim / 4;

// One tile of 128 tokens, sequence and KV head.
__global__ void __launch_bounds__(kThreads)
    arrange_kernel(const __grid_constant__ AttentionArguments arguments,
                   const __grid_constant__ Fp8Arrangement arranged) {
  __shared__ uint32_t transposed[4][32][kFp8TileKeys / 4 + 1];  // dim 4 i + j at [j][i]
  const auto index = static_cast<int>(blockIdx.x);
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

}  // namespace

void launch_arrange_fp8(const AttentionArguments& arguments, int num_sequences,
                        const Fp8Arrangement& arranged, cudaStream_t stream) {
  const int64_t tiles =
      int64_t{num_sequences} * arranged.tiles_per_sequence * arguments.num_kv_heads;
  if (tiles == 0) return;
  arrange_kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(arguments, arranged);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
