// Keys and values of tokens that stand before a piece's token in the same step: the tokens of a
// sequence whose next tokens are drafted. Other blocks are about to write them to the KV pages, so
// the copy of a unit may have read something else. A warp takes them from the exchange, as it takes
// the newest row (newest_row.cuh), and writes them into the unit again.
#pragma once

#include "kernels/cuda/decode_step/exchange.cuh"
#include "kernels/cuda/decode_step/head_norms.cuh"
#include "kernels/cuda/decode_step/newest_row.cuh"

namespace tessera {

// The rows of a unit that belong to such tokens.
struct EarlierRows {
  int begin;
  int end;

  // newest_row: where the piece's token would be, counted from the unit's first row; it may lie
  // behind the unit. num_earlier: tokens of the sequence in the step before this one.
  __device__ static EarlierRows of(int newest_row, int num_earlier, int unit_tokens) {
    return {.begin = max(0, newest_row - num_earlier), .end = min(unit_tokens, newest_row)};
  }
  __device__ bool any() const { return begin < end; }
};

// Where the exchange has the keys, or the values, of one KV head of the step's tokens, and what
// they still lack.
struct EarlierSource {
  const uint32_t* newest;   // float [head_dim] of the piece's token
  int token_words;          // from one token's words to the next one's
  const uint32_t* squares;  // of keys with q/k norm: float [head_dim / kItemRows] of the piece's
                            // token; null: nothing is normed
  int token_squares;        // from one token's squares to the next one's
  float kv_scale;           // what stored e4m3 elements are multiplied with
};

// Called by all lanes of a warp.
template <int kHeadDim, bool kFp8>
__device__ void write_earlier_rows(const FusedDecodeArguments& arguments,
                                   const EarlierSource& source, const EarlierRows& rows,
                                   int newest_row, uint32_t unit) {
  using Row = NewestRow<kHeadDim, kFp8>;
  constexpr int kAtOnce = 4;  // rows whose words are asked for together
  constexpr int kItems = kHeadDim / kItemRows;
  const int lane = reread_lane_index();
  const bool has_column = lane * 4 < kHeadDim;
#pragma unroll 1
  for (int first = rows.begin; first < rows.end; first += kAtOnce) {
    uint4 words[kAtOnce][Row::kVectors];
    uint32_t squares[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const bool is_needed = first + i < rows.end;
#pragma unroll
      for (uint4& vector : words[i]) vector = is_needed && has_column ? missing_words() : uint4{};
      squares[i] = is_needed && source.squares != nullptr ? kMissing : 0;
    }
    poll([&] {
      bool missing = false;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int before = newest_row - (first + i);  // tokens, from this row's to the piece's
#pragma unroll
        for (int v = 0; v < Row::kVectors; ++v) {
          load_if_missing(words[i][v], source.newest - before * source.token_words +
                                           v * Row::kElements + lane * 4);
        }
        load_if_missing(squares[i], source.squares - before * source.token_squares + lane % kItems);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (const uint4& vector : words[i]) missing |= is_missing(vector);
        missing |= is_missing(squares[i]);
      }
      return missing;
    });
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      float scale = 1.0f;
      if (source.squares != nullptr) {
        scale = head_norm_scale<kHeadDim, kItems>(arguments, __uint_as_float(squares[i]), 1.0f);
      }
      if (first + i >= rows.end) break;
      Row row;
#pragma unroll
      for (int v = 0; v < Row::kVectors; ++v) row.take(v, words[i][v], scale, source.kv_scale);
      row.write_row(unit, first + i);
    }
  }
  __syncwarp();
}

}  // namespace tessera
