// The end of an item of decode attention: its warps' results become one, and the results of the
// blocks that shared it become rows of the output.
#pragma once

#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/attention/decode/plan.h"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/exponential.cuh"

namespace tessera {

// Partial results of the items that several blocks share, by row and slot (decode_slot). Outputs
// are normalised; log_sums are log2 of the sum of 2^(scale_log2 * score), -inf without a key.
struct DecodePartials {
  float* outputs;      // [item_rows][num_slots][head_dim]
  float* log_sums;     // [item_rows][num_slots]
  uint32_t* arrivals;  // [num_blocks]: finished pieces of the item that begins there; then 0
  int num_slots;
};

// What the warps of a block leave for each other, float32.
template <int kHeadDim>
struct DecodeStaging {
  static constexpr int kStride = static_cast<int>(decode_staging_stride(kHeadDim));
  float* outputs;   // [num_slices][item_rows][kStride]
  float* row_maxs;  // [num_slices][item_rows]
  float* row_sums;  // [num_slices][item_rows]
  int num_slices;   // warps that share a row tile and divide its keys
  int item_rows;

  __device__ DecodeStaging(void* memory, int num_slices, int item_rows)
      : outputs(static_cast<float*>(memory)),
        row_maxs(outputs + num_slices * item_rows * kStride),
        row_sums(row_maxs + num_slices * item_rows),
        num_slices(num_slices),
        item_rows(item_rows) {}

  // Stores the rows of this warp's tile, from `row` of its item on, as far as they are below
  // num_rows.
  template <typename Warp>
  __device__ void store(const Warp& warp, int slice, int row, int num_rows) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int my_row = row + Warp::row_of(half);
      if (my_row >= num_rows) continue;
      const int index = slice * item_rows + my_row;
      warp.store_row(outputs + index * kStride, half);
      if (Warp::speaks_for_row()) {
        row_maxs[index] = warp.row_max[0][half];
        row_sums[index] = warp.row_sum[0][half];
      }
    }
  }

  // Four columns of a row over all slices, kMaxSlices at most, normalised, zeros when the row saw
  // no key; and its log-sum.
  template <int kMaxSlices = decode_warps(kHeadDim)>
  __device__ float4 merged(int row, int column, float scale_log2, float& log_sum) const {
    float maxs[kMaxSlices];
    float sums[kMaxSlices];
    float4 parts[kMaxSlices];
    float row_max = -INFINITY;
#pragma unroll
    for (int slice = 0; slice < kMaxSlices; ++slice) {
      maxs[slice] = -INFINITY;
      sums[slice] = 0.0f;
      parts[slice] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (slice < num_slices) {
        const int index = slice * item_rows + row;
        maxs[slice] = row_maxs[index];
        sums[slice] = row_sums[index];
        parts[slice] = *reinterpret_cast<const float4*>(outputs + index * kStride + column);
      }
      row_max = fmaxf(row_max, maxs[slice]);
    }
    const float base = row_max == -INFINITY ? 0.0f : row_max * scale_log2;
    float sum = 0.0f;
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int slice = 0; slice < kMaxSlices; ++slice) {
      const float weight = fast_exp2(maxs[slice] * scale_log2 - base);
      sum += weight * sums[slice];
      value.x += weight * parts[slice].x;
      value.y += weight * parts[slice].y;
      value.z += weight * parts[slice].z;
      value.w += weight * parts[slice].w;
    }
    // A row that saw a key has a sum of at least 1, where this approximation errs by 2^-22.
    const float inverse = sum > 0.0f ? __fdividef(1.0f, sum) : 0.0f;
    log_sum = sum > 0.0f ? base + __log2f(sum) : -INFINITY;
    return make_float4(value.x * inverse, value.y * inverse, value.z * inverse, value.w * inverse);
  }
};

// Attention over what groups of decodes share, for the launch that reads the rest
// (shared_prefix.h). Rows are those of the output.
struct SharedPrefixRows {
  float* outputs;             // [num_decodes * num_heads][head_dim], normalised
  float* log_sums;            // [num_decodes * num_heads], as those of DecodePartials
  const int32_t* own_begins;  // [num_decodes], where the rest of a context begins
};
struct SharedPrefixArguments : AttentionArguments {
  SharedPrefixRows shared;
};

// The mean of two results, four columns of a row, weighted by their log-sums.
__device__ inline float4 merged_parts(float4 a, float log_sum_a, float4 b, float log_sum_b) {
  const float largest = fmaxf(log_sum_a, log_sum_b);
  const float base = largest == -INFINITY ? 0.0f : largest;
  const float weight_a = fast_exp2(log_sum_a - base);
  const float weight_b = fast_exp2(log_sum_b - base);
  const float sum = weight_a + weight_b;
  const float inverse = sum > 0.0f ? __fdividef(1.0f, sum) : 0.0f;
  return make_float4(
      (weight_a * a.x + weight_b * b.x) * inverse, (weight_a * a.y + weight_b * b.y) * inverse,
      (weight_a * a.z + weight_b * b.z) * inverse, (weight_a * a.w + weight_b * b.w) * inverse);
}

// Stores four columns of a row of the output.
template <typename Element, int kHeadDim>
__device__ void store_output(const AttentionArguments& arguments, int64_t row, int column,
                             float4 value) {
  store_vector(static_cast<Element*>(arguments.out) + row * kHeadDim, column / 4,
               Vector<Element, 4>{{from_float<Element>(value.x), from_float<Element>(value.y),
                                   from_float<Element>(value.z), from_float<Element>(value.w)}});
}

// The same where two launches read a context: the first leaves the columns for the second, which
// merges them with its own and stores the output.
template <typename Element, int kHeadDim, DecodePart kPart>
__device__ void store_part(const SharedPrefixArguments& arguments, int64_t row, int column,
                           float4 value, float log_sum) {
  const SharedPrefixRows& shared = arguments.shared;
  auto* const prefix = reinterpret_cast<float4*>(shared.outputs + row * kHeadDim + column);
  if constexpr (kPart == DecodePart::kShared) {
    *prefix = value;
    if (column == 0) shared.log_sums[row] = log_sum;
  } else {
    store_output<Element, kHeadDim>(
        arguments, row, column,
        merged_parts(value, log_sum, __ldcg(prefix), __ldcg(shared.log_sums + row)));
  }
}

// out = sum_p 2^(log_sum_p - m) * output_p / sum_p 2^(log_sum_p - m),  m = max_p log_sum_p
// over the item's pieces p, in order: the result is the same bit by bit whichever came last.
template <typename Element, int kHeadDim, int kThreads, DecodePart kPart, typename Arguments>
__device__ void merge_pieces(const Arguments& arguments, const DecodePiece& piece,
                             const DecodePartials& partials, int thread) {
  constexpr int kAtOnce = 16;  // loads in flight
  constexpr int kRowVectors = kHeadDim / 4;
  for (int index = thread; index < piece.num_rows * kRowVectors; index += kThreads) {
    const int row = index / kRowVectors;
    const int column = index % kRowVectors * 4;
    float max_log_sum = -INFINITY;
    float sum = 0.0f;
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int count = piece.owners.count;
    const int64_t partial = static_cast<int64_t>(row) * partials.num_slots +
                            decode_slot(piece.owners.first_block, true);
    const float* const row_log_sums = partials.log_sums + partial;
    const float* const row_outputs = partials.outputs + partial * kHeadDim + column;
    for (int first = 0; first < count; first += kAtOnce) {
      float log_sums[kAtOnce];
      float4 outputs[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        log_sums[i] = -INFINITY;
        outputs[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (first + i < count) {
          const int slot = decode_slot(first + i, first + i == 0) - decode_slot(0, true);
          // Written by other multiprocessors: not from this one's L1 cache.
          log_sums[i] = __ldcg(row_log_sums + slot);
          outputs[i] = __ldcg(reinterpret_cast<const float4*>(row_outputs + slot * kHeadDim));
        }
      }
      float new_max = max_log_sum;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) new_max = fmaxf(new_max, log_sums[i]);
      const float base = new_max == -INFINITY ? 0.0f : new_max;
      const float correction = fast_exp2(max_log_sum - base);
      max_log_sum = new_max;
      sum *= correction;
      value = make_float4(value.x * correction, value.y * correction, value.z * correction,
                          value.w * correction);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const float weight = fast_exp2(log_sums[i] - base);
        sum += weight;
        value.x += weight * outputs[i].x;
        value.y += weight * outputs[i].y;
        value.z += weight * outputs[i].z;
        value.w += weight * outputs[i].w;
      }
    }
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    const float4 mean =
        make_float4(value.x * inverse, value.y * inverse, value.z * inverse, value.w * inverse);
    const int64_t out_row = step_row(arguments, piece, piece.first_row + row);
    if constexpr (kPart == DecodePart::kWhole) {
      store_output<Element, kHeadDim>(arguments, out_row, column, mean);
    } else {
      const float log_sum = sum > 0.0f ? max_log_sum + __log2f(sum) : -INFINITY;
      store_part<Element, kHeadDim, kPart>(arguments, out_row, column, mean, log_sum);
    }
  }
}

}  // namespace tessera
