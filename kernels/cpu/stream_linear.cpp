#include <algorithm>
#include <cstring>

#include "kernels/cpu/element_types.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/vectors.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// Rows that are computed together.
constexpr int kRows = 4;

constexpr int64_t kPageBytes = 4096;

template <typename Weight>
struct LinearArguments {
  float* out;            // [num_tokens, out_features]
  const float* x;        // [num_tokens, in_features]
  const Weight* weight;  // [out_features, in_features]
  int64_t num_tokens;
  int64_t in_features;
  int64_t out_features;
  LinearEpilogue epilogue;
};

// sums[t][r] += x[t][i] * weight[r][i] for i < count <= kLanes; rows of both are `length` apart.
template <int kLanes, int kTokens, int kTileRows, typename Weight, typename Floats>
VECTOR_INLINE void add_products(const float* x, const Weight* weight, int64_t length, int64_t count,
                                Floats (&sums)[kTokens][kTileRows]) {
  Floats x_lanes[kTokens], weight_lanes;
  VECTOR_UNROLL
  for (int t = 0; t < kTokens; ++t) load_first(x + t * length, count, x_lanes[t]);
  VECTOR_UNROLL
  for (int r = 0; r < kTileRows; ++r) {
    load_first(weight + r * length, count, weight_lanes);
    VECTOR_UNROLL
    for (int t = 0; t < kTokens; ++t) sums[t][r] += x_lanes[t] * weight_lanes;
  }
}

// Weights of the tile after this, or where tiles are short of the one after that. Rows are about as
// long as a page of memory, where the prefetching of the hardware ends: without this a core reads
// 20 GB/s, with it 30.
template <int kTileRows, int64_t kCount, typename Weight>
VECTOR_INLINE void prefetch_weights(const Weight* weight, int64_t length) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(Weight));
  for (int r = 0; r < kTileRows; ++r) {
    for (int64_t i = 0; i < kCount; i += kLine) __builtin_prefetch(weight + r * length + i);
  }
}

// What the epilogue makes of the sums of neighbouring elements of out: a float, or a vector of
// them.
template <typename Sums>
VECTOR_INLINE void apply_epilogue(const LinearEpilogue& epilogue, int64_t row, Sums& sums,
                                  float* out) {
  Sums bias{}, before{};
  if (epilogue.bias != nullptr) std::memcpy(&bias, epilogue.bias + row, sizeof(bias));
  if (epilogue.accumulate) std::memcpy(&before, out, sizeof(before));
  sums = before + epilogue.multiplier * (sums + bias);
  std::memcpy(out, &sums, sizeof(sums));
}

// The elements of out of one token and the tile's rows, from vectors whose lanes sum to them.
template <int kLanes, int kTileRows, typename Weight, typename Floats>
VECTOR_INLINE void store_sums(const LinearArguments<Weight>& arguments, int64_t token, int64_t row,
                              Floats (&vectors)[kTileRows]) {
  float* const out = arguments.out + token * arguments.out_features + row;
  if constexpr (kTileRows == 4) {
    constexpr int kStride = kLanes / kTileRows;
    sum_each(vectors);
    VectorOf<4>::Floats sums =
        __builtin_shufflevector(vectors[0], vectors[0], 0, kStride, 2 * kStride, 3 * kStride);
    apply_epilogue(arguments.epilogue, row, sums, out);
  } else {
    static_assert(kTileRows == 1);
    float sum = sum_of(vectors[0]);
    apply_epilogue(arguments.epilogue, row, sum, out);
  }
}

// The tile of out at (token, row): kTokens x kTileRows dot products at once, so that a weight is
// loaded for kTokens and an addition need not wait for the one before it. Every element is summed
// in its own lanes and comes out the same whatever the tile.
template <int kLanes, int kTokens, int kTileRows, typename Weight>
VECTOR_INLINE void multiply_tile(const LinearArguments<Weight>& arguments, int64_t token,
                                 int64_t row) {
  constexpr int64_t kStep = 64 / sizeof(Weight);  // a cache line
  const int64_t length = arguments.in_features;
  const float* x = arguments.x + token * length;
  const Weight* weight = arguments.weight + row * length;
  const int64_t tile = kTileRows * length;
  const int64_t ahead = tile * int64_t{sizeof(Weight)} < kPageBytes ? 2 * tile : tile;
  typename VectorOf<kLanes>::Floats sums[kTokens][kTileRows] = {};
  int64_t i = 0;
  for (; i + kStep <= length; i += kStep) {
    prefetch_weights<kTileRows, kStep>(weight + ahead + i, length);
    for (int64_t j = i; j < i + kStep; j += kLanes) {
      add_products<kLanes>(x + j, weight + j, length, kLanes, sums);
    }
  }
  for (; i < length; i += kLanes) {
    add_products<kLanes>(x + i, weight + i, length, std::min<int64_t>(kLanes, length - i), sums);
  }
  VECTOR_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    store_sums<kLanes>(arguments, token + t, row, sums[t]);
  }
}

// A row, or kRows, for all tokens; after the first tile the weights come from the cache.
struct MultiplyRows {
  template <int kLanes, typename Weight>
  VECTOR_INLINE static void run(const LinearArguments<Weight>& arguments, int64_t row) {
    if (row + kRows <= arguments.out_features) return all_tokens<kLanes, kRows>(arguments, row);
    for (; row < arguments.out_features; ++row) all_tokens<kLanes, 1>(arguments, row);
  }
  // AVX-512 has registers for the sums of six tokens, others for three. Where these are too few for
  // all tokens, tiles have about as many each: seven tokens are four and three, not six and one,
  // since a tile of one takes over half as long as one of four.
  template <int kLanes, int kTileRows, typename Weight>
  VECTOR_INLINE static void all_tokens(const LinearArguments<Weight>& arguments, int64_t row) {
    constexpr int kMost = kLanes == 16 ? 6 : 3;
    int64_t token = 0;
    for (int64_t tiles = ceil_divide<int64_t>(arguments.num_tokens, kMost); tiles > 0; --tiles) {
      const int64_t count = ceil_divide(arguments.num_tokens - token, tiles);
      multiply_tokens<kLanes, kMost, kTileRows>(arguments, token, count, row);
      token += count;
    }
  }
  // The tile of `count` tokens, kMost at most.
  template <int kLanes, int kMost, int kTileRows, typename Weight>
  VECTOR_INLINE static void multiply_tokens(const LinearArguments<Weight>& arguments, int64_t token,
                                            int64_t count, int64_t row) {
    if (count == kMost) {
      multiply_tile<kLanes, kMost, kTileRows>(arguments, token, row);
    } else if constexpr (kMost > 1) {
      multiply_tokens<kLanes, kMost - 1, kTileRows>(arguments, token, count, row);
    }
  }
};

}  // namespace

void stream_linear(const Tensor& out, const Tensor& x, const Tensor& weight,
                   const LinearEpilogue& epilogue, ThreadPool& pool) {
  with_float_type(weight.dtype, [&]<typename Weight>() {
    const LinearArguments<Weight> arguments{.out = out.as<float>(),
                                            .x = x.as<float>(),
                                            .weight = weight.as<Weight>(),
                                            .num_tokens = x.dim(0),
                                            .in_features = x.dim(1),
                                            .out_features = weight.dim(0),
                                            .epilogue = epilogue};
    const double nanoseconds =
        static_cast<double>(kRows * arguments.in_features) *
        (sizeof(Weight) * kNanosecondsPerByte + arguments.num_tokens * kNanosecondsPerMultiplyAdd);
    pool.for_each(ceil_divide<int64_t>(arguments.out_features, kRows), nanoseconds,
                  [&](int64_t group) { run_vectorized<MultiplyRows>(arguments, group * kRows); });
  });
}

}  // namespace tessera
