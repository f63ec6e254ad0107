// What the skinny product does with queries, keys and values: rotary positions (Su et al. 2021),
// and the append to the KV pages.
#pragma once

#include <cstdint>

#include "kernels/cuda/linear/quads.cuh"
#include "kernels/cuda/linear/skinny/tiles.cuh"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/rotation.cuh"

namespace tessera {

// What a lane does with the results of its block's only tile. Vectors (see tiles.cuh) 2 p and
// 2 p + 1 lie in the two halves of a head, so that the lane has both elements of every rotation: of
// each vector it has two neighbouring elements of each of two tokens.
template <typename Config>
class SkinnyRotation {};

template <typename Config>
requires(Config::kRotates) class SkinnyRotation<Config> {
 public:
  using Element = typename Config::Element;
  static constexpr int kVectors = Config::kVectors / Config::kSplit;
  static constexpr int kPairs = kVectors / 2;
  static_assert(Config::kVectors % (2 * Config::kSplit) == 0);

  // Computes the angles, and where the tokens' keys and values go. While the kernel before still
  // runs, this costs no time.
  __device__ void prepare(const SkinnyArguments& arguments, const SkinnyShare<Config>& share,
                          int first_token) {
    const SkinnyRope& rope = arguments.rope;
    first_place_ = share.first_tile * Config::kRows + share.rank * kVectors * 8;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int row = rope.row(first_place_ + i * 8);
      const bool has_bias = rope.bias != nullptr && row < arguments.out_features;
      bias_[i] = has_bias ? reinterpret_cast<const float2*>(rope.bias + row)[lane_index() % 4]
                          : make_float2(0.0f, 0.0f);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int token = min(first_token + 8 * i, arguments.num_tokens - 1);
      const int32_t position = rope.positions[token];
      const int32_t slot = rope.kv_slots[token];
      const int page = slot / rope.page_size;
      page_rows_[i] = int64_t{page} * rope.kv_rows * rope.page_size +
                      (slot - page * rope.page_size) * rope.head_dim;
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const int element = rope.row(first_place_ + pair * 16) & (rope.head_dim - 1);
        const float* const frequencies = rope.rope_table + element + lane_index() % 4 * 2;
        const float* const amplitudes = frequencies + rope.head_dim / 2;
        angles_[pair][i][0] = rotation_of(position, frequencies[0], amplitudes[0]);
        angles_[pair][i][1] = rotation_of(position, frequencies[1], amplitudes[1]);
      }
    }
  }

  // All lanes of the warp together.
  __device__ void store(const SkinnyArguments& arguments, int first_token,
                        float4 (&results)[kVectors]) const {
    const SkinnyRope& rope = arguments.rope;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      results[i] = {results[i].x + bias_[i].x, results[i].y + bias_[i].y, results[i].z + bias_[i].x,
                    results[i].w + bias_[i].y};
    }
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      if (first_place_ + pair * 16 >= rope.query_rows + rope.kv_rows) break;  // values
      float4& a = results[2 * pair];
      float4& b = results[2 * pair + 1];
      const auto& [first, second] = angles_[pair];
      rotate(a.x, b.x, first[0]);
      rotate(a.y, b.y, first[1]);
      rotate(a.z, b.z, second[0]);
      rotate(a.w, b.w, second[1]);
    }
    constexpr int kRest = kVectors % 4;
#pragma unroll
    for (int i = 0; i + 4 <= kVectors; i += 4) store_quads<4>(arguments, first_token, i, results);
    if constexpr (kRest > 0) {
      store_quads<kRest>(arguments, first_token, kVectors - kRest, results);
    }
  }

 private:
  __device__ static void rotate(float& a, float& b, const float2& angle) {
    const float rotated = a * angle.x - b * angle.y;
    b = b * angle.x + a * angle.y;
    a = rotated;
  }

  template <int kCount>
  __device__ void store_quads(const SkinnyArguments& arguments, int first_token, int index,
                              const float4* results) const {
    uint32_t first[4] = {};
    uint32_t second[4] = {};
    round_to_quads<Element, kCount>(results + index, first, second);
    const int vector = lane_index() % 4;
    const int row = arguments.rope.row(first_place_ + (index + vector) * 8);
    if (vector >= kCount || row >= arguments.out_features) return;
    const auto store = [&](int token, int64_t page_row, const uint32_t(&quad)[4]) {
      if (token >= arguments.num_tokens) return;
      *reinterpret_cast<uint4*>(target(arguments, row, token, page_row)) = {quad[0], quad[1],
                                                                            quad[2], quad[3]};
    };
    store(first_token, page_rows_[0], first);
    store(first_token + 8, page_rows_[1], second);
  }

  // Where the token's element of this row goes.
  __device__ static Element* target(const SkinnyArguments& arguments, int row, int token,
                                    int64_t page_row) {
    const SkinnyRope& rope = arguments.rope;
    if (row < rope.query_rows) {
      return static_cast<Element*>(arguments.out) + int64_t{token} * rope.query_rows + row;
    }
    const bool is_key = row < rope.query_rows + rope.kv_rows;
    const int kv_row = row - rope.query_rows - (is_key ? 0 : rope.kv_rows);
    const int element = kv_row & (rope.head_dim - 1);
    return static_cast<Element*>(is_key ? rope.keys : rope.values) + page_row +
           int64_t{kv_row - element} * rope.page_size + element;
  }

  int first_place_;              // of the block's vectors, see SkinnyRope::row()
  float2 bias_[kVectors];        // of the lane's two elements of each
  int64_t page_rows_[2];         // where each token's row of the first KV head begins
  float2 angles_[kPairs][2][2];  // (cos, sin) of each token, of each element
};

}  // namespace tessera
