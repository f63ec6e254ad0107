#include "kernels/cuda/attention/paged_rows.cuh"
#include "kernels/cuda/attention/prefill/sm80.h"
#include "kernels/cuda/attention/warp_attention.cuh"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kStages = 2;

// What a block computes. A lane keeps kRowTiles * kHeadDim / 2 registers of output, and two blocks
// have to fit into a multiprocessor's registers and shared memory, one into the 99 KiB of sm_86.
template <int kHeadDim>
struct TileSizes {
  static constexpr int kRowTiles = kHeadDim <= 128 ? 2 : 1;
  static constexpr int kWarpQueries = 16 * kRowTiles;
  static constexpr int kQueries = kWarps * kWarpQueries;
  static constexpr int kKeys = kHeadDim <= 128 ? 64 : 32;
  static constexpr int kWarpKeys = kKeys / kWarps;  // that a warp copies
  static_assert(kCopyTokens % kWarpKeys == 0, "a warp's keys lie in one page");
  // The queries, then per stage the keys and the values.
  static constexpr int kSharedRows = kQueries + 2 * kStages * kKeys;
};

template <typename Element, int kHeadDim>
using TileAttention =
    WarpAttention<Element, kHeadDim, TileSizes<kHeadDim>::kRowTiles, TileSizes<kHeadDim>::kKeys>;

// The query rows of a block: those of one sequence and one head. The main loop needs little of it,
// so what the epilogue needs is read again there instead of kept in registers.
template <int kHeadDim>
struct QueryTile {
  int sequence;
  int first_token;  // of the step, row 0
  int num_rows;
  int context_length;
  int first_position;  // in the context, row 0; negative where queries outnumber the context

  __device__ explicit QueryTile(const AttentionArguments& arguments) {
    constexpr int kQueries = TileSizes<kHeadDim>::kQueries;
    sequence = arguments.num_decodes + static_cast<int>(blockIdx.y);
    const int begin = arguments.query_starts[sequence];
    const int query_length = arguments.query_starts[sequence + 1] - begin;
    const int first_row = static_cast<int>(gridDim.z - 1 - blockIdx.z) * kQueries;
    first_token = begin + first_row;
    num_rows = min(kQueries, query_length - first_row);
    context_length = arguments.context_lengths[sequence];
    first_position = context_length - query_length + first_row;
  }

  // Where `row` of the block's head begins in a tensor [num_tokens, num_heads, head_dim].
  __device__ int64_t element_offset(const AttentionArguments& arguments, int row) const {
    const uint32_t head_row = (first_token + row) * arguments.num_heads + blockIdx.x;
    return static_cast<int64_t>(head_row) * kHeadDim;
  }
};

// Divides the warp's output by its sums and writes it, through `staging` for 16-byte stores.
template <typename Element, int kHeadDim>
__device__ void store_output(const TileAttention<Element, kHeadDim>& attention,
                             const SwizzledRows<Element, kHeadDim>& staging,
                             const AttentionArguments& arguments) {
  using Rows = SwizzledRows<Element, kHeadDim>;
  constexpr int kWarpQueries = TileSizes<kHeadDim>::kWarpQueries;
  const int warp_row = warp_index() * kWarpQueries;
  const int lane = reread_lane_index();
  __syncwarp();  // every lane has read its query rows
#pragma unroll
  for (int m = 0; m < TileSizes<kHeadDim>::kRowTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = attention.row_sum[m][half];
      const float factor = sum > 0.0f ? 1.0f / sum : 0.0f;  // 0: the row sees no key
      const int row = warp_row + m * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int n = 0; n < Rows::kChunks; ++n) {
        const auto& values = attention.output[m][n];
        *reinterpret_cast<uint32_t*>(staging.chunk(row, n) + lane % 4 * 2) =
            pack_pair<Element>(values[2 * half] * factor, values[2 * half + 1] * factor);
      }
    }
  }
  __syncwarp();
  const QueryTile<kHeadDim> tile(arguments);
  for (int index = lane; index < kWarpQueries * Rows::kChunks; index += kWarpSize) {
    const int row = warp_row + index / Rows::kChunks;
    const int chunk = index % Rows::kChunks;
    if (row < tile.num_rows) {
      store_vector(static_cast<Element*>(arguments.out) + tile.element_offset(arguments, row),
                   chunk, load_vector<8>(staging.chunk(row, chunk), 0));
    }
  }
}

template <typename Element, int kHeadDim>
__global__ void __launch_bounds__(kThreads, 2)
    attention_prefill_kernel(const __grid_constant__ AttentionArguments arguments) {
  using Rows = SwizzledRows<Element, kHeadDim>;
  using Sizes = TileSizes<kHeadDim>;
  constexpr int kTileElements = Sizes::kKeys * kHeadDim;
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  const Rows queries{reinterpret_cast<Element*>(shared_bytes)};
  Element* const stages = queries.data + Sizes::kQueries * kHeadDim;
  const auto key_rows = [&](int stage) { return Rows{stages + 2 * stage * kTileElements}; };
  const auto value_rows = [&](int stage) { return Rows{stages + (2 * stage + 1) * kTileElements}; };

  const QueryTile<kHeadDim> tile(arguments);
  if (tile.num_rows <= 0) return;

  const int warp = warp_index();
  const int warp_row = warp * Sizes::kWarpQueries;
  queries.template copy_rows_async<Sizes::kWarpQueries>(
      warp_row,
      static_cast<const Element*>(arguments.query) + tile.element_offset(arguments, warp_row),
      static_cast<int64_t>(arguments.num_heads) * kHeadDim, tile.num_rows - warp_row);

  // The first group of tokens that the first row sees; keys before it may have lost their page.
  const int first_key =
      max(0, tile.first_position + 1 - arguments.window) / kCopyTokens * kCopyTokens;
  const int keys_end = arguments.causal ? tile.first_position + tile.num_rows : tile.context_length;
  const PagedRows<Element, kHeadDim> context{
      arguments, tile.sequence, static_cast<int>(blockIdx.x) / arguments.heads_per_kv_head,
      keys_end};
  const auto copy_tile = [&](int stage, int key, int32_t page) {
    const int row = warp * Sizes::kWarpKeys;
    context.template copy_group_async<Sizes::kWarpKeys>(key_rows(stage), value_rows(stage), row,
                                                        key + row, page);
    commit_async_copies();
  };
  const auto page_of_tile = [&](int key) { return context.page_of(key + warp * Sizes::kWarpKeys); };

  // The warp's first row sees keys before `visible_end`, each later row sees row_step keys more. A
  // warp without queries sees none: it only copies.
  const int row_step = arguments.causal ? 1 : 0;
  const int visible_end = warp_row >= tile.num_rows ? -Sizes::kQueries
                          : arguments.causal        ? tile.first_position + warp_row + 1
                                                    : tile.context_length;
  const int last_visible_end = visible_end + (Sizes::kWarpQueries - 1) * row_step;
  TileAttention<Element, kHeadDim> attention;
  attention.reset();

  copy_tile(0, first_key, page_of_tile(first_key));
  int32_t next_page = page_of_tile(first_key + Sizes::kKeys);
  int stage = 0;
  for (int key = first_key; key < keys_end; key += Sizes::kKeys, stage ^= 1) {
    wait_async_copies<0>();
    // The tile is there for every warp, and every warp is done with the stage that comes next.
    __syncthreads();
    if (key + Sizes::kKeys < keys_end) {
      copy_tile(stage ^ 1, key + Sizes::kKeys, next_page);
      next_page = page_of_tile(key + 2 * Sizes::kKeys);
    }
    if (key >= last_visible_end) continue;  // the warp's rows have seen all they see

    attention.multiply_keys(queries, warp_row, key_rows(stage), 0);
    attention.cap(arguments.softcap_scale);
    const bool all_visible =
        key + Sizes::kKeys <= visible_end && key >= last_visible_end - arguments.window;
    if (!all_visible) {
      attention.mask(visible_end + reread_lane_index() / 4 * row_step - key, arguments.window,
                     8 * row_step);
    }
    attention.update_softmax(arguments.scale_log2);
    attention.multiply_values(value_rows(stage), 0);
  }
  attention.finish_sums();
  wait_async_copies<0>();  // of the query rows, if there was no key
  // The warp's own query rows, which no other warp reads, hold its output on the way out.
  store_output(attention, queries, arguments);
}

}  // namespace

void launch_attention_prefill_sm80(const Tensor& out, const AttentionParams& params,
                                   cudaStream_t stream) {
  const AttentionArguments arguments = make_attention_arguments(out, params);
  const AttentionBatch& batch = params.batch;
  dispatch_element(out.dtype, [&]<typename Element>() {
    dispatch_head_dim(params.pages.head_dim(), [&]<int kHeadDim>() {
      using Sizes = TileSizes<kHeadDim>;
      const dim3 grid(
          static_cast<unsigned>(params.query.dim(1)),
          static_cast<unsigned>(batch.num_sequences - batch.num_decodes),
          static_cast<unsigned>(ceil_divide<int64_t>(batch.max_query_length, Sizes::kQueries)));
      constexpr size_t shared_bytes = Sizes::kSharedRows * kHeadDim * sizeof(Element);
      const auto kernel = attention_prefill_kernel<Element, kHeadDim>;
      CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared_bytes)));
      kernel<<<grid, kThreads, shared_bytes, stream>>>(arguments);
    });
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
