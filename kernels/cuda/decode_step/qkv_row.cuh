// What becomes of a row of queries, keys and values in the fused decode kernel: bias, q/k norm,
// rotation, the exchange, KV pages.
#pragma once

#include "kernels/cuda/decode_step/block.cuh"
#include "kernels/cuda/decode_step/exchange.cuh"
#include "kernels/cuda/primitives/element.cuh"

namespace tessera {

// A lane's row of a token. The two groups of an item are of the two halves of a head, so that the
// lane kUnitRows further on has the other element of a rotation. All lanes of a warp call the
// functions together, but for load_terms() and store().
template <int kTokens, int kHeadDim, FusedInstance kInstance>
struct QkvRow {
  using Element = __nv_bfloat16;

  const FusedDecodeArguments& arguments;
  const FusedSignals<kTokens, kHeadDim, kInstance>& signals;
  int layer;
  int token;
  int row;
  bool is_valid;

  // Asks for the bias and q/k norm's weight. The layer's pointers are there: this warp has waited
  // for them before the product that ended in this layer's residual stream.
  __device__ void load_terms(RowTerms& terms) const {
    if (pointers().qkv_bias != nullptr) {
      terms.addend = __float_as_uint(pointers().qkv_bias[row]);
    }
    if (pointers().qk_norm != nullptr && !is_value()) {
      const bool is_whole = computes_any_block(kInstance) && arguments.block.has_whole_norm != 0;
      terms.factor = pointers().qk_norm[is_whole ? row : (kv_head() < 0 ? 0 : kHeadDim) + column()];
    }
  }

  // Applies what stands between the product and the rotation: the bias and q/k norm's weight. The
  // norm's scale needs the squares of a whole head, or of all, of which this warp may have only
  // some items. So it publishes the squares of its items, and attention, which reads queries and
  // keys, applies the scale; that commutes with the rotation.
  __device__ float altered(float value, const RowTerms& terms) const {
    value += __uint_as_float(terms.addend);
    if (arguments.block.has_qk_norm != 0) {
      float squares = is_valid ? value * value : 0.0f;
#pragma unroll
      for (int distance = 1; distance < kItemRows; distance *= 2) {
        squares += __shfl_xor_sync(kFullWarp, squares, distance);
      }
      const int item = row / kHeadDim * (kHeadDim / kItemRows) + column() / kUnitRows;
      if (is_valid && !is_value() && reread_lane_index() % kItemRows == 0) {
        const int token_items = arguments.products[kQkv].rows / kItemRows;
        publish(words(arguments.layout.qk_squares) + token * token_items + item, squares);
      }
    }
    return value * terms.factor;
  }

  // Rotates queries and keys, and publishes them and the values for attention. half: in which of
  // the item's two groups the row is.
  __device__ float publish_rotated(float value, int half) const {
    constexpr int kHalf = kHeadDim / 2;
    const float other_half = __shfl_xor_sync(kFullWarp, value, kUnitRows);
    if (!is_value()) {
      const auto& rotations = rotations_of_layer(arguments, signals, layer);
      const float2 rotation = rotations.of_token[token][column() % kHalf];
      value = value * rotation.x + (half == 0 ? -other_half : other_half) * rotation.y;
    }
    if (is_valid) {
      publish(words(arguments.layout.qkv) + token * arguments.products[kQkv].rows + row, value);
    }
    return value;
  }

  // Whether store() is to be called. Where keys are normalised, attention stores them: this warp
  // cannot wait for the squares of a head, because items of the head may belong to its later
  // passes. In float8_e4m3, attention stores both, since it has the scales.
  __device__ bool is_stored() const {
    return is_valid && (stores_keys() ? kv_head() >= 0 : stores_values() && is_value());
  }
  // Stores an element of a key or value in its page.
  __device__ void store(float value) const {
    const AttentionArguments& attention = arguments.attention;
    const int head = kv_head();
    const int kv_heads = num_kv_heads<kInstance>(arguments);
    const bool is_key = head < kv_heads;
    const int64_t of_page = is_key ? head : head - kv_heads;
    const auto page_size = static_cast<int64_t>(attention.page_size.divisor());
    Element* const pages = is_key ? pointers().keys : pointers().values;
    pages[(signals.page_rows[token] + of_page * page_size) * kHeadDim + column()] =
        from_float<Element>(value);
  }

 private:
  __device__ const FusedLayerPointers& pointers() const { return signals.layers[layer % 2]; }
  __device__ uint32_t* words(int offset) const { return arguments.copies[layer % 2] + offset; }
  __device__ static constexpr bool stores_values() { return !reads_fp8(kInstance); }
  __device__ bool stores_keys() const {
    return stores_values() && (is_llama(kInstance) || arguments.block.has_qk_norm == 0);
  }
  __device__ bool is_value() const { return kv_head() >= num_kv_heads<kInstance>(arguments); }
  // The KV head, first of keys, then of values; below 0 for queries.
  __device__ int kv_head() const { return row / kHeadDim - arguments.attention.num_heads; }
  __device__ int column() const { return row % kHeadDim; }
};

}  // namespace tessera
