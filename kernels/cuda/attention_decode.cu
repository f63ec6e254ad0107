#include "kernels/cuda/attention_decode.h"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/decode_splits.cuh"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/paged_rows.cuh"
#include "kernels/cuda/warp_attention.cuh"

namespace tessera {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kTileHeads = DecodeAttentionPlan::kTileHeads;
constexpr int kStages = 3;
static_assert(DecodeAttentionPlan::kTileTokens == kWarps * kGroupTokens);
static_assert(kTileHeads == 16, "the rows of one tensor-core tile");

// Shared memory: the query rows, then for each warp and stage a group of keys and one of values.
template <typename Element, int kHeadDim>
constexpr size_t kSharedBytes = (kTileHeads + 2 * kWarps * kStages * kGroupTokens) * kHeadDim *
                                sizeof(Element);

// What each warp found, for the merge.
struct WarpSoftmax {
  float row_max[kWarps][kTileHeads];
  float row_sum[kWarps][kTileHeads];

  __device__ float max_of_all(int row) const {
    float result = row_max[0][row];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) result = fmaxf(result, row_max[warp][row]);
    return result;
  }
};

template <typename Element, int kHeadDim>
using DecodeAttention = WarpAttention<Element, kHeadDim, 1, kGroupTokens>;

// Weighs the warp's output rows by 2^(own max - max of all warps) and leaves them in `staging`,
// float32 [kWarps][kTileHeads][kHeadDim].
template <typename Element, int kHeadDim>
__device__ void stage_output(const DecodeAttention<Element, kHeadDim>& attention,
                             const WarpSoftmax& softmax, float* staging, float scale_log2) {
  const int lane = lane_index();
  float* const rows = staging + warp_index() * kTileHeads * kHeadDim;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = half * 8 + lane / 4;
    // A warp that had no tokens has a maximum of -inf and weighs 0.
    const float weight =
        fast_exp2((attention.row_max[0][half] - softmax.max_of_all(row)) * scale_log2);
#pragma unroll
    for (int n = 0; n < DecodeAttention<Element, kHeadDim>::kOutputTiles; ++n) {
      const auto& values = attention.output[0][n];
      reinterpret_cast<float2*>(rows + row * kHeadDim + n * 8)[lane % 4] =
          make_float2(values[2 * half] * weight, values[2 * half + 1] * weight);
    }
  }
}

// The query heads a block computes and the split it reads.
struct DecodeTile {
  int sequence;
  int split;
  int kv_head;
  int first_head;
  int num_rows;

  __device__ explicit DecodeTile(int group) : sequence(blockIdx.z), split(blockIdx.x) {
    const int head_tiles = (group + kTileHeads - 1) / kTileHeads;
    const int first_group_head = blockIdx.y % head_tiles * kTileHeads;
    kv_head = blockIdx.y / head_tiles;
    first_head = kv_head * group + first_group_head;
    num_rows = min(kTileHeads, group - first_group_head);
  }
};

// Adds the warps' output rows in order and writes them: to `out` when there is one split, else as
// the partial result of this one.
template <typename Element, int kHeadDim>
__device__ void store_merged(const DecodeTile& tile, const WarpSoftmax& softmax,
                             const float* staging, const AttentionArguments& arguments,
                             const DecodeSplits& splits, int64_t query_row) {
  for (int index = threadIdx.x; index < tile.num_rows * kHeadDim; index += kThreads) {
    const int row = index / kHeadDim;
    const float row_max = softmax.max_of_all(row);
    float sum = 0.0f;
    float value = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      sum += softmax.row_sum[warp][row] *
             fast_exp2((softmax.row_max[warp][row] - row_max) * arguments.scale_log2);
      value += staging[warp * kTileHeads * kHeadDim + index];
    }
    value /= sum;
    if (splits.num_splits == 1) {
      static_cast<Element*>(arguments.out)[query_row * kHeadDim + index] =
          from_float<Element>(value);
      continue;
    }
    const int column = index % kHeadDim;
    const int64_t partial =
        splits.row(tile.sequence, arguments.num_heads, tile.first_head + row, tile.split);
    splits.output(partial, kHeadDim)[column] = value;
    if (column == 0) {
      splits.log_sum(partial, kHeadDim) = row_max * arguments.scale_log2 + log2f(sum);
    }
  }
}

template <typename Element, int kHeadDim>
__global__ void __launch_bounds__(kThreads, DecodeAttentionPlan::kBlocksPerMultiprocessor)
    attention_decode_kernel(const __grid_constant__ AttentionArguments arguments,
                            const __grid_constant__ DecodeSplits splits) {
  using Rows = SwizzledRows<Element, kHeadDim>;
  constexpr int kGroupElements = kGroupTokens * kHeadDim;
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  __shared__ WarpSoftmax softmax;
  const Rows queries{reinterpret_cast<Element*>(shared_bytes)};
  Element* const rings = queries.data + kTileHeads * kHeadDim;

  const DecodeTile tile(arguments.group);
  const int sequence = tile.sequence;
  const int context_length = arguments.context_lengths[sequence];
  const int visible_begin = DecodeSplits::visible_begin(arguments, context_length);
  const int begin = splits.split_begin(visible_begin, tile.split);
  const int end = min(begin + splits.split_tokens, context_length);
  if (begin >= end) return;  // a shorter context than the longest

  const int64_t token = arguments.query_starts[sequence];
  const int64_t query_row = token * arguments.num_heads + tile.first_head;
  const int warp = warp_index();
  Element* const ring = rings + warp * kStages * 2 * kGroupElements;
  const auto key_rows = [&](int stage) { return Rows{ring + 2 * stage * kGroupElements}; };
  const auto value_rows = [&](int stage) { return Rows{ring + (2 * stage + 1) * kGroupElements}; };
  const PagedRows<Element, kHeadDim> context{arguments, sequence, tile.kv_head, end};

  if (warp == 0) {
    queries.template copy_rows_async<kTileHeads>(
        0, static_cast<const Element*>(arguments.query) + query_row * kHeadDim, kHeadDim,
        tile.num_rows);
  }
  // Group i of this warp begins at token first + i * step. The ring holds kStages - 1 groups ahead.
  const int first = begin + warp * kGroupTokens;
  constexpr int kStep = kWarps * kGroupTokens;
  const auto copy_group = [&](int stage, int group_begin, int32_t page) {
    if (group_begin < end) {
      context.copy_group_async(key_rows(stage), value_rows(stage), 0, group_begin, page);
    }
    commit_async_copies();  // an empty group keeps the count of the waits below
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    const int group_begin = first + stage * kStep;
    copy_group(stage, group_begin, context.page_of(group_begin));
  }
  int32_t next_page = context.page_of(first + (kStages - 1) * kStep);

  DecodeAttention<Element, kHeadDim> attention;
  attention.reset();
  wait_async_copies<kStages - 2>();
  __syncthreads();  // the query rows, copied by warp 0, are there
  int stage = 0;
  for (int group_begin = first; group_begin < end; group_begin += kStep) {
    wait_async_copies<kStages - 2>();
    __syncwarp();
    const int ahead = group_begin + (kStages - 1) * kStep;
    copy_group((stage + kStages - 1) % kStages, ahead, next_page);
    next_page = context.page_of(ahead + kStep);

    attention.multiply_keys(queries, 0, key_rows(stage), 0);
    if (group_begin < visible_begin || group_begin + kGroupTokens > end) {
      attention.template mask<0>(end - group_begin, end - visible_begin);
    }
    attention.update_softmax(arguments.scale_log2);
    attention.multiply_values(value_rows(stage), 0);
    stage = (stage + 1) % kStages;
    __syncwarp();  // every lane has read the stage that the next copy overwrites
  }

  attention.finish_sums();
  if (lane_index() % 4 == 0) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      softmax.row_max[warp][half * 8 + lane_index() / 4] = attention.row_max[0][half];
      softmax.row_sum[warp][half * 8 + lane_index() / 4] = attention.row_sum[0][half];
    }
  }
  wait_async_copies<0>();
  __syncthreads();  // the rings become the staging area
  float* const staging = reinterpret_cast<float*>(rings);
  stage_output<Element, kHeadDim>(attention, softmax, staging, arguments.scale_log2);
  __syncthreads();

  store_merged<Element, kHeadDim>(tile, softmax, staging, arguments, splits, query_row);
}

}  // namespace

void launch_attention_decode(const Tensor& out, const AttentionParams& params,
                             const DecodeAttentionPlan& plan, cudaStream_t stream) {
  const AttentionArguments arguments = make_attention_arguments(out, params);
  const DecodeSplits splits(params, plan);
  const auto head_tiles = decode_head_tiles(
      {.num_heads = params.query.dim(1), .num_kv_heads = params.pages.num_kv_heads()});
  const dim3 grid(static_cast<unsigned>(plan.num_splits), static_cast<unsigned>(head_tiles),
                  static_cast<unsigned>(params.batch.num_decodes));
  dispatch_element(out.dtype, [&]<typename Element>() {
    dispatch_head_dim(params.pages.head_dim(), [&]<int kHeadDim>() {
      constexpr size_t shared_bytes = kSharedBytes<Element, kHeadDim>;
      static_assert(2 * kStages * sizeof(Element) >= sizeof(float), "rings hold the staging area");
      const auto kernel = attention_decode_kernel<Element, kHeadDim>;
      CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared_bytes)));
      kernel<<<grid, kThreads, shared_bytes, stream>>>(arguments, splits);
    });
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
