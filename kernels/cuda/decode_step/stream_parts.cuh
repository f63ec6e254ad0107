// The residual stream in two parts, in the instance of the fused decode kernel for any block.
//
// Where a norm stands between what a half of a layer adds and the residual stream, the stream into
// the next product is h' = h + s p: h is the stream before, p what is added times the norm's
// weight, and s the norm's scale. s depends on all rows. If whoever finishes rows waited for it
// before they publish h', every half would wait for all blocks twice. But the product is linear:
//   W (w h') / rms(h') = (W (w h) + s W (w p)) / rms(h'), w being the weight of the next norm.
// So h and p travel apart, h even before p has been computed. Those of a single token lie in
// columns of one tensor-core tile of which it leaves most empty, and so take no instruction more.
// What adds the product's sums up knows s and rms(h') by then, from four sums over all rows:
//   |h'|^2 = |h|^2 + 2 s (h . p) + s^2 |p|^2.
// Eight tokens fill these columns. Then every block waits for their factors s before it multiplies,
// and adds the parts up itself (FusedInputs::join()), which rounds them to bfloat16 once more;
// still no half waits for all blocks twice.
// Blocks without such norms have s = 1. Blocks with no other norms (OLMo 2) multiply h' as it is: w
// and rms(h') are 1 but for the output head.
#pragma once

#include <type_traits>

#include "kernels/cuda/decode_step/squares.cuh"

namespace tessera {

// A row of the stream that a product adds to.
struct StreamRow {
  float sum = 0.0f;     // what the half adds, before the norm of that
  float stream = 0.0f;  // h
  float added = 0.0f;   // p
};

// A share of the sums over all rows, or all of them: kStreamSums words of the exchange.
struct StreamSums {
  float of_added = 0.0f;     // squares of StreamRow::sum
  float of_stream = 0.0f;    // of h
  float of_products = 0.0f;  // h . p
  float of_weighted = 0.0f;  // squares of p

  __device__ void operator+=(const StreamSums& other) {
    of_added += other.of_added;
    of_stream += other.of_stream;
    of_products += other.of_products;
    of_weighted += other.of_weighted;
  }
};

__device__ inline StreamSums squares_of(const StreamRow& row) {
  return {.of_added = row.sum * row.sum,
          .of_stream = row.stream * row.stream,
          .of_products = row.stream * row.added,
          .of_weighted = row.added * row.added};
}

__device__ inline void add_share(StreamSums& sums, const uint4& share) {
  sums += {.of_added = __uint_as_float(share.x),
           .of_stream = __uint_as_float(share.y),
           .of_products = __uint_as_float(share.z),
           .of_weighted = __uint_as_float(share.w)};
}

__device__ inline StreamSums warp_sum(const StreamSums& sums) {
  return {.of_added = warp_sum(sums.of_added),
          .of_stream = warp_sum(sums.of_stream),
          .of_products = warp_sum(sums.of_products),
          .of_weighted = warp_sum(sums.of_weighted)};
}

__device__ inline void publish_share(uint32_t* words, int share, const StreamSums& sums) {
  publish(words + share * kStreamSums,
          make_uint4(__float_as_uint(sums.of_added), __float_as_uint(sums.of_stream),
                     __float_as_uint(sums.of_products), __float_as_uint(sums.of_weighted)));
}

// What an instance sums over all rows.
template <FusedInstance kInstance>
using StreamSquares = std::conditional_t<(stream_parts(kInstance) > 1), StreamSums, float>;

struct StreamScales {
  float added;   // s
  float stream;  // 1 / rms(h')
};

// Waits for all shares of a token's sums and returns its scales. words: squares_in or squares_mid
// of the exchange. is_normed: whether a norm stands before the product. Called by all lanes of a
// warp.
template <int kTokens>
__device__ StreamScales wait_for_stream_scales(const FusedDecodeArguments& arguments,
                                               const uint32_t* words, int token, bool is_normed) {
  const auto sums = wait_for_squares<kTokens, uint4, StreamSums>(arguments, words, token);
  const float added =
      arguments.block.has_post_norms != 0 ? norm_scale(arguments, sums.of_added) : 1.0f;
  const float squares =
      sums.of_stream + added * (2.0f * sums.of_products + added * sums.of_weighted);
  return {.added = added, .stream = is_normed ? norm_scale(arguments, fmaxf(squares, 0.0f)) : 1.0f};
}

}  // namespace tessera
