// Attention of the fused decode kernel. A block computes its pieces of the step's attention items
// (attention/decode/items.cuh): each warp reads units of its own, then the results of the warps are
// merged, then those of the blocks that share an item.
#pragma once

#include "kernels/cuda/decode_step/block.cuh"
#include "kernels/cuda/decode_step/earlier_rows.cuh"
#include "kernels/cuda/decode_step/exchange.cuh"
#include "kernels/cuda/decode_step/fp8_warp.cuh"
#include "kernels/cuda/decode_step/head_norms.cuh"
#include "kernels/cuda/decode_step/newest_row.cuh"
#include "kernels/cuda/decode_step/squares.cuh"

namespace tessera {

template <int kTokens, int kHeadDim, FusedInstance kInstance>
class FusedAttention {
 public:
  using Element = __nv_bfloat16;
  static constexpr bool kFp8 = reads_fp8(kInstance);
  using Warp =
      std::conditional_t<kFp8, FusedFp8AttentionWarp<kHeadDim>, FusedAttentionWarp<kHeadDim>>;
  using Rows = typename Warp::Rows;
  using Signals = FusedSignals<kTokens, kHeadDim, kInstance>;
  static constexpr int kUnitTokens = Warp::kUnitTokens;
  using Newest = NewestRow<kHeadDim, kFp8>;
  static constexpr int kRowVectors = kHeadDim / 4;

  // staging: DecodeStaging of kFusedWarps slices.
  __device__ FusedAttention(const FusedDecodeArguments& arguments, const Signals& signals,
                            int layer, uint32_t* copy, void* staging)
      : arguments_(arguments),
        attention_(!is_llama(kInstance) && arguments.block.kind(layer) != 0
                       ? arguments.second_attention
                       : arguments.attention),
        share_(share_of_layer(arguments, signals, layer)),
        signals_(signals),
        layer_(layer),
        copy_(copy),
        staging_(staging, kFusedWarps, arguments.attention.heads_per_kv_head) {}

  // The pieces are planned.
  __device__ void run(UnitRing& ring) const {
    const int num_pieces = share_.num_pieces;
    if (num_pieces == 0) return;
#pragma unroll 1
    for (int i = 0; i < num_pieces; ++i) compute_piece(share_.pieces[i], ring);
#pragma unroll 1
    for (int i = 0; i < num_pieces; ++i) {
      if (share_.pieces[i].owners.count > 1) merge_piece(share_.pieces[i]);
    }
    sync_fused_consumers();  // the staging area is free for inputs
  }

 private:
  // The words of the exchange that hold one head of the piece's token, as floats. The heads of
  // queries come first, then those of keys, then those of values.
  __device__ const uint32_t* head_words(const DecodePiece& piece, int head) const {
    return copy_ + arguments_.layout.qkv + piece.first_token * arguments_.products[kQkv].rows +
           head * kHeadDim;
  }
  __device__ const uint32_t* newest_key(const DecodePiece& piece) const {
    return head_words(piece, attention_.num_heads + piece.kv_head);
  }
  __device__ const uint32_t* newest_value(const DecodePiece& piece) const {
    return newest_key(piece) + num_kv_heads<kInstance>(arguments_) * kHeadDim;
  }

  // RMSNorm's scale, which the words of qkv lack. Most often the shares that it is computed from
  // have been published before the last of these words.
  __device__ float input_scale(const DecodePiece& piece) const {
    if (!attention_applies_scale<kTokens, kInstance>(arguments_)) return 1.0f;
    return wait_for_scale<kTokens>(arguments_, copy_ + arguments_.layout.squares_in,
                                   piece.first_token);
  }
  // What stored keys and values of the piece's head are multiplied with.
  struct KvScales {
    float key = 1.0f;
    float value = 1.0f;
  };
  __device__ KvScales kv_scales(const DecodePiece& piece) const {
    if constexpr (!kFp8) return {};
    const int kv_heads = num_kv_heads<kInstance>(arguments_);
    const float* const scales = arguments_.kv_scales + layer_ * 2 * kv_heads + piece.kv_head;
    return {scales[0], scales[kv_heads]};
  }

  using HeadSquares = tessera::HeadSquares<kHeadDim>;
  // Whether a norm is one of all queries, and one of all keys, not of each head.
  __device__ bool norms_whole() const {
    return computes_any_block(kInstance) && arguments_.block.has_whole_norm != 0;
  }

  // Waits for the queries, and for the newest token's key and value if the warp has their unit, all
  // in one wait.
  __device__ void load_queries(Warp& warp, const DecodePiece& piece, bool has_newest,
                               Newest& newest_key_row, Newest& newest_value_row) const {
    const KvScales scales = kv_scales(piece);  // asked for before the waits for other blocks
    const float scale = input_scale(piece);
    float query_scale = scale;
    float key_scale = scale;
    if constexpr (computes_any_block(kInstance)) {
      if (norms_whole()) {
        const auto scale_of = [&](int first_head, int num_heads) {
          return wait_for_whole_norm_scale<kHeadDim>(arguments_, copy_, piece.first_token,
                                                     first_head, num_heads, scale);
        };
        query_scale *= scale_of(0, attention_.num_heads);
        const int num_keys = arguments_.block.num_kv_heads;
        if (has_newest) key_scale *= scale_of(attention_.num_heads, num_keys);
      }
    }
    const int lane = reread_lane_index();
    const bool has_row = lane / 4 < piece.num_rows;
    const int row = has_row ? lane / 4 : 0;
    const uint32_t* const source =
        head_words(piece, first_query_head<kInstance>(arguments_, piece) + row) +
        lane % 4 * (kFp8 ? 4 : 2);
    constexpr int kSecondPair = kFp8 ? 2 : 8;
    uint2 words[Warp::kSteps][2];
#pragma unroll
    for (int step = 0; step < Warp::kSteps; ++step) {
      words[step][0] = words[step][1] = missing_pair();
    }
    const bool has_column = lane * 4 < kHeadDim;
    uint4 key[Newest::kVectors];
    uint4 value[Newest::kVectors];
#pragma unroll
    for (int i = 0; i < Newest::kVectors; ++i) {
      key[i] = value[i] = has_newest && has_column ? missing_words() : uint4{};
    }
    [[maybe_unused]] HeadSquares squares;
    if constexpr (!is_llama(kInstance)) {
      const bool is_normed = arguments_.block.has_qk_norm != 0 && !norms_whole();
      squares = HeadSquares::template of<kInstance>(arguments_, piece, row, has_newest, is_normed);
    }
    poll([&] {
      if constexpr (!is_llama(kInstance)) squares.load_missing(copy_);
#pragma unroll
      for (int i = 0; i < Newest::kVectors; ++i) {
        const int column = i * Newest::kElements + lane * 4;
        load_if_missing(key[i], newest_key(piece) + column);
        load_if_missing(value[i], newest_value(piece) + column);
      }
#pragma unroll
      for (int step = 0; step < Warp::kSteps; ++step) {
        load_if_missing(words[step][0], source + step * 16);
        load_if_missing(words[step][1], source + step * 16 + kSecondPair);
      }
      // Waits for one word. Asking for all of them again and again would take the memory system
      // from the blocks that still compute.
      poll([&] {
        load_if_missing(words[0][0], source);
        return is_missing(words[0][0]);
      });
      bool missing = false;
#pragma unroll
      for (int i = 0; i < Newest::kVectors; ++i) {
        missing |= is_missing(key[i]) || is_missing(value[i]);
      }
#pragma unroll
      for (int step = 0; step < Warp::kSteps; ++step) {
        missing |= is_missing(words[step][0]) || is_missing(words[step][1]);
      }
      if constexpr (!is_llama(kInstance)) missing |= squares.has_missing();
      return missing;
    });
    if constexpr (!is_llama(kInstance)) {
      if (arguments_.block.has_qk_norm != 0 && !norms_whole()) {
        __syncwarp();
        float query_squares = 0.0f;
#pragma unroll
        for (const uint32_t word : squares.query) query_squares += __uint_as_float(word);
        query_scale *= head_norm_scale<kHeadDim, 4>(arguments_, query_squares, scale);
        key_scale *= head_norm_scale<kHeadDim, HeadSquares::kItems>(
            arguments_, __uint_as_float(squares.key), scale);
      }
    }
#pragma unroll
    for (int step = 0; step < Warp::kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint2 pair = words[step][i];
        warp.query[step][i] = has_row ? pack_pair<Element>(__uint_as_float(pair.x) * query_scale,
                                                           __uint_as_float(pair.y) * query_scale)
                                      : 0;
      }
    }
    if constexpr (kFp8) warp.narrow_queries(scales.key);
#pragma unroll
    for (int i = 0; i < Newest::kVectors; ++i) {
      newest_key_row.take(i, key[i], key_scale, scales.key);
      newest_value_row.take(i, value[i], scale, scales.value);
    }
    if constexpr (kFp8) {
      if (has_newest) {
        newest_key_row.store(signals_.layers[layer_ % 2].keys, page_row(piece));
        newest_value_row.store(signals_.layers[layer_ % 2].values, page_row(piece));
      }
    }
    if constexpr (!is_llama(kInstance) && !kFp8) {
      if (has_newest && arguments_.block.has_qk_norm != 0) {
        newest_key_row.store(signals_.layers[layer_ % 2].keys, page_row(piece));
      }
    }
  }

  // The row in the layer's pages of the newest key and value. The warp that has the newest token's
  // unit appends them where warps that finish products cannot: the key with q/k norm, both over
  // float8_e4m3 pages. The layer's pointers are there by then (FusedStep::attend).
  __device__ int64_t page_row(const DecodePiece& piece) const {
    const auto page_size = static_cast<int64_t>(attention_.page_size.divisor());
    return signals_.page_rows[piece.first_token] + piece.kv_head * page_size;
  }

  // Writes what the unit has of tokens before the piece's in the step. newest_row: where the
  // piece's token is, counted from the unit's first row.
  template <bool kIsKey>
  __device__ void write_earlier(const DecodePiece& piece, int newest_row, uint32_t unit) const {
    if constexpr (kTokens > 1) {
      const auto rows = EarlierRows::of(newest_row, num_earlier_tokens(piece), kUnitTokens);
      if (!rows.any()) return;
      const int qkv_rows = arguments_.products[kQkv].rows;
      EarlierSource source{.newest = kIsKey ? newest_key(piece) : newest_value(piece),
                           .token_words = qkv_rows,
                           .squares = nullptr,
                           .token_squares = qkv_rows / kItemRows,
                           .kv_scale = kIsKey ? kv_scales(piece).key : kv_scales(piece).value};
      if constexpr (kIsKey && !is_llama(kInstance)) {
        const int key_head = attention_.num_heads + piece.kv_head;
        if (arguments_.block.has_qk_norm != 0) {
          source.squares = copy_ + arguments_.layout.qk_squares +
                           piece.first_token * source.token_squares +
                           key_head * HeadSquares::kItems;
        }
      }
      write_earlier_rows<kHeadDim, kFp8>(arguments_, source, rows, newest_row, unit);
    }
  }

  __device__ void compute_piece(const DecodePiece& piece, UnitRing& ring) const {
    const PieceUnits units = PieceUnits::of<kUnitTokens>(piece, reread_warp_index());
    const int context_length = piece.context_length;
    const bool has_earlier = kTokens > 1 && num_earlier_tokens(piece) > 0;
    Warp warp;
    warp.reset();
    Newest newest_key_row{};
    Newest newest_value_row{};
    if (units.first < units.end) {
      const int newest_unit = (context_length - 1) / kUnitTokens;
      const bool has_newest = newest_unit >= units.first && newest_unit < units.end &&
                              (newest_unit - units.first) % kFusedWarps == 0;
      load_queries(warp, piece, has_newest, newest_key_row, newest_value_row);
    }
#pragma unroll 1
    for (int unit = units.first; unit < units.end; unit += kFusedWarps) {
      // How many keys of the unit the query sees, from the unit's first on.
      const int end = context_length - unit * kUnitTokens;
      const int begin = end - attention_.window;
      const bool has_newest = end <= kUnitTokens;
      const uint32_t keys = ring.wait();
      if (has_earlier) [[unlikely]]
        write_earlier<true>(piece, end - 1, keys);
      if (has_newest) newest_key_row.write(keys, end - 1);
      warp.multiply_keys(Rows{keys, kUnitTokens});
      ring.release();
      if constexpr (!is_llama(kInstance)) warp.cap(attention_.softcap_scale);
      if (has_newest || begin > 0) warp.mask(begin, end);
      warp.update_softmax(attention_.scale_log2);
      const uint32_t values = ring.wait();
      if (has_earlier) [[unlikely]]
        write_earlier<false>(piece, end - 1, values);
      if (has_newest) newest_value_row.write(values, end - 1);
      warp.multiply_values(Rows{values, kUnitTokens});
      ring.release();
    }
    warp.finish_sums();
    if constexpr (kFp8) warp.scale_output(kv_scales(piece).value);  // read anew: saves a register
    sync_fused_consumers();  // inputs, or the piece before, have been read from staging
    warp.store(staging_, reread_warp_index(), piece.num_rows);
    sync_fused_consumers();
    merge_warps(piece);
  }

  // Merges the results of the block's warps: into the piece's result, or into the output when the
  // piece is the whole item.
  __device__ void merge_warps(const DecodePiece& piece) const {
    const bool is_whole = piece.owners.count == 1;
    for (int index = reread_thread_index(); index < piece.num_rows * kRowVectors;
         index += kFusedConsumers) {
      const int row = index / kRowVectors;
      const int column = index % kRowVectors * 4;
      float log_sum;
      const float4 value =
          staging_.template merged<kFusedWarps>(row, column, attention_.scale_log2, log_sum);
      if (is_whole) {
        publish_output(piece, row, column, value);
      } else {
        uint32_t* const slot = partial_slot(static_cast<int>(blockIdx.x), piece.index == 0);
        publish(slot + row * kHeadDim + column,
                make_uint4(__float_as_uint(value.x), __float_as_uint(value.y),
                           __float_as_uint(value.z), __float_as_uint(value.w)));
        if (column == 0) publish(slot + attention_.heads_per_kv_head * kHeadDim + row, log_sum);
      }
    }
  }

  __device__ uint32_t* partial_slot(int block, bool is_first_piece) const {
    return copy_ + arguments_.partials +
           decode_slot(block, is_first_piece) *
               fused_partial_words(attention_.heads_per_kv_head, kHeadDim);
  }

  __device__ void publish_output(const DecodePiece& piece, int row, int column,
                                 float4 value) const {
    const int head = first_query_head<kInstance>(arguments_, piece) + row;
    const int token_words = arguments_.products[kOProj].features / 2;
    uint32_t* const first =
        copy_ + arguments_.layout.attention_out + piece.first_token * token_words;
    const uint2 pairs =
        make_uint2(pack_pair<Element>(value.x, value.y), pack_pair<Element>(value.z, value.w));
#pragma unroll
    for (int replica = 0; replica < exchange_replicas(kTokens); ++replica) {
      publish_features<kTokens>(first + replica * arguments_.num_tokens * token_words,
                                (head * kHeadDim + column) / 4, pairs);
    }
  }

  // Computes this block's share of the outputs of an item that several blocks have pieces of: the
  // blocks take vectors of four columns in turn. The formula is that of merge_pieces(), and it adds
  // up the pieces in the same order.
  __device__ void merge_piece(const DecodePiece& piece) const {
    constexpr int kAtOnce = 8;  // loads in flight
    const int count = piece.owners.count;
    const int num_vectors = piece.num_rows * kRowVectors;
    for (int index = piece.index + reread_thread_index() * count; index < num_vectors;
         index += kFusedConsumers * count) {
      const int row = index / kRowVectors;
      const int column = index % kRowVectors * 4;
      float max_log_sum = -INFINITY;
      float sum = 0.0f;
      float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
      for (int first = 0; first < count; first += kAtOnce) {
        uint4 outputs[kAtOnce];
        uint32_t log_sums[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const bool is_needed = first + i < count;
          outputs[i] = is_needed ? missing_words() : uint4{};
          log_sums[i] = is_needed ? kMissing : 0;
        }
        poll([&] {
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            const uint32_t* const slot =
                partial_slot(piece.owners.first_block + first + i, first + i == 0);
            load_if_missing(outputs[i], slot + row * kHeadDim + column);
            load_if_missing(log_sums[i], slot + attention_.heads_per_kv_head * kHeadDim + row);
          }
          bool missing = false;
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            missing |= is_missing(outputs[i]) || is_missing(log_sums[i]);
          }
          return missing;
        });
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          if (first + i >= count) continue;
          const float log_sum = __uint_as_float(log_sums[i]);
          const float new_max = fmaxf(max_log_sum, log_sum);
          const float base = new_max == -INFINITY ? 0.0f : new_max;
          const float correction = fast_exp2(max_log_sum - base);
          const float weight = fast_exp2(log_sum - base);
          max_log_sum = new_max;
          sum = sum * correction + weight;
          value.x = value.x * correction + weight * __uint_as_float(outputs[i].x);
          value.y = value.y * correction + weight * __uint_as_float(outputs[i].y);
          value.z = value.z * correction + weight * __uint_as_float(outputs[i].z);
          value.w = value.w * correction + weight * __uint_as_float(outputs[i].w);
        }
      }
      const float inverse = sum > 0.0f ? __fdividef(1.0f, sum) : 0.0f;
      publish_output(
          piece, row, column,
          make_float4(value.x * inverse, value.y * inverse, value.z * inverse, value.w * inverse));
    }
  }

  const FusedDecodeArguments& arguments_;
  const AttentionArguments& attention_;
  const FusedAttentionShare<kTokens>& share_;
  const Signals& signals_;
  int layer_;
  uint32_t* copy_;
  DecodeStaging<kHeadDim> staging_;
};

}  // namespace tessera
