// What becomes of the sums of the fused decode kernel's products: rotated queries, keys and values,
// the residual stream, the feed-forward network's hidden features, logits.
#pragma once

#include "kernels/cuda/decode_step/block.cuh"
#include "kernels/cuda/decode_step/exchange.cuh"
#include "kernels/cuda/decode_step/qkv_row.cuh"
#include "kernels/cuda/decode_step/squares.cuh"
#include "kernels/cuda/decode_step/stream_parts.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/exponential.cuh"
#include "kernels/cuda/primitives/gelu.cuh"
#include "kernels/cuda/primitives/silu.cuh"

namespace tessera {

// What one warp finishes: all products of one token. It walks the products as the warps that
// compute do, and its functions are called by all lanes together.
template <int kTokens, int kHeadDim, FusedInstance kInstance>
class FusedEpilogue {
 public:
  using Element = __nv_bfloat16;
  using Signals = FusedSignals<kTokens, kHeadDim, kInstance>;
  // Whether the residual stream has two parts, and whether the warps that multiply join them.
  static constexpr bool kHasParts = stream_parts(kInstance) > 1;
  static constexpr bool kJoinsParts = joins_parts(kTokens, kInstance);
  using Row = std::conditional_t<kHasParts, StreamRow, float>;
  using Squares = StreamSquares<kInstance>;

  // If `token` is num_tokens or more, the warp finishes nothing.
  __device__ FusedEpilogue(const FusedDecodeArguments& arguments, Signals& signals, int token)
      : arguments_(arguments), signals_(signals), token_(token) {}

  __device__ void begin_product(const FusedPosition& position) {
    position_ = position;
    squares_ = Squares{};
    scale_ = 0.0f;
    output_.is_valid = false;
  }

  // Waits for the token's scales of a product of the residual stream, hands the other warps the
  // factor of its second part, and waits for those of the other tokens, which it returns. Every
  // warp that computes calls this once in each of these products: two in a layer, and the output
  // head. No warp writes the next product's factors while another reads these: in between it has
  // finished a product that ends in the residual stream, to whose sums all warps contribute.
  __device__ const float* exchange_factors() {
    if (finishes()) {
      wait_for_input_scale();
      if (reread_lane_index() == 0) signals_.factors[token_] = added_scale_;
    }
    __syncwarp();
    if (arrives_for_warp(reread_lane_index())) mbarrier_arrive(&signals_.factors_known);
    mbarrier_wait(&signals_.factors_known, position_.product == kGateUp ? 1 : 0);
    return signals_.factors;
  }

  // Asks for the words that the pass will need besides its sums. Most often they have been
  // published; finish_pass() asks again for those that were missing.
  __device__ void begin_pass(const LanePass& pass) {
    const int group = reread_lane_index() / kUnitRows;
    const FusedProduct& product = arguments_.products[position_.product];
    output_ = {.row = pass.row,
               .is_valid = finishes() && group < pass.num_groups && pass.row < product.rows};
    if (position_.ends_in_residual()) {
      terms_ = {.addend = 0, .factor = 0.0f};
      if (output_.is_valid) load_residual_terms();
    } else if (!is_llama(kInstance) && position_.product == kQkv) {
      terms_ = {.addend = 0, .factor = 1.0f};
      if (output_.is_valid) qkv_row().load_terms(terms_);
    }
  }

  // Waits for the sums of all warps and publishes the pass's outputs. A rehearsal, which is for a
  // pass without groups, takes any numbers for sums, waits for nothing and publishes nothing.
  __device__ void finish_pass(const RingPosition& place, bool rehearses = false) {
    if (finishes()) {
      if (!rehearses) {
        if (position_.ends_in_residual()) {
          wait_for_residual();
          if constexpr (kHasParts) publish_part(0, __uint_as_float(terms_.addend));
        } else if (!kJoinsParts && scales_first()) {
          wait_for_input_scale();
        }
        mbarrier_wait(&signals_.sums_full[place.stage], place.parity);
      }
      float sum = sum_of_warps(place, token_);
      if constexpr (kHasParts && !kJoinsParts) {
        if (!position_.ends_in_residual()) sum += added_scale_ * sum_of_warps(place, 1);
      }
      if (position_.ends_in_residual()) {
        finish_residual(sum, rehearses);
      } else {
        finish_normed(sum, rehearses);
      }
    }
    __syncwarp();
    if (arrives_for_warp(reread_lane_index()) && !rehearses)
      mbarrier_arrive(&signals_.sums_free[place.stage]);
  }

  __device__ void end_product(bool rehearses = false) {
    if constexpr (kHasParts && !kJoinsParts) {
      // A block without a pass of this product may still have the stream to publish.
      if (!position_.ends_in_residual() && !rehearses) wait_for_input_scale();
    }
    if (!finishes() || !position_.ends_in_residual()) return;
    publish_share(squares_after(), squares_, own_squares(), !rehearses);
  }

 private:
  // The row whose sum a lane finishes, in group lane / 8 of a pass.
  struct Output {
    int row;  // of the product
    bool is_valid;
  };

  // The sum of a lane's row over the warps that multiply. row: token_, or the part.
  __device__ float sum_of_warps(const RingPosition& place, int row) const {
    float sum = 0.0f;
#pragma unroll
    for (int from = 0; from < kFusedWarps; ++from) {
      sum += signals_.sums[place.stage][from][row][reread_lane_index()];
    }
    return sum;
  }

  // A constant for the compiler when kTokens is 1.
  __device__ int num_tokens() const { return kTokens == 1 ? 1 : arguments_.num_tokens; }
  __device__ int hidden_size() const { return arguments_.products[kQkv].features; }
  __device__ bool finishes() const { return token_ < num_tokens(); }
  __device__ const FusedExchangeLayout& layout() const { return arguments_.layout; }
  __device__ uint32_t* exchange(int layer) const { return arguments_.copies[layer % 2]; }
  __device__ uint32_t* words(int offset) const { return exchange(position_.layer) + offset; }
  __device__ const FusedLayerPointers& layer(int layer) const { return signals_.layers[layer % 2]; }

  // Whether the product is the one that ends in the residual stream in the middle of a layer, that
  // is, the output projection of attention.
  __device__ bool is_mid() const { return position_.product == kOProj; }
  // Which of an item's two groups the lane finishes.
  __device__ int half_of_item() const {
    return reread_lane_index() / kUnitRows & arguments_.products[position_.product].is_paired;
  }

  __device__ void load_residual_terms() {
    const int layer_index = position_.layer;
    const float* norm_weight = arguments_.norm;
    if (is_mid()) {
      norm_weight = layer(layer_index).pre_feedforward_layernorm;
    } else if (layer_index + 1 < arguments_.num_layers) {
      // After this wait the next layer's pointers are there.
      mbarrier_wait(&signals_.words_cleared, layer_index % 2);
      norm_weight = layer(layer_index + 1).input_layernorm;
    }
    terms_ = {.addend = load_word(residual_before()), .factor = norm_weight[output_.row]};
    if constexpr (!is_llama(kInstance)) {
      if (has_post_norms()) post_term_ = layer(layer_index).post_norms[half()][output_.row];
    }
  }
  __device__ const uint32_t* residual_before() const {
    return words(is_mid() ? layout().residual_in : layout().residual_mid) + token_ * hidden_size() +
           output_.row;
  }

  __device__ void wait_for_residual() {
    poll([&] {
      load_if_missing(terms_.addend, residual_before());
      return is_missing(terms_.addend);
    });
    // Once other blocks have these words, they ask for words of the next layer, which must have
    // been cleared before.
    if (is_mid()) mbarrier_wait(&signals_.words_cleared, position_.layer % 2);
  }

  // Adds to the residual stream.
  __device__ void finish_residual(float sum, bool rehearses) {
    float added = sum;
    if constexpr (!is_llama(kInstance)) {
      if (!output_.is_valid) sum = 0.0f;
      added = sum * arguments_.block.residual_multiplier;
      if (has_post_norms()) added = post_term_ *= added;
    }
    if constexpr (kHasParts) {
      publish_added(sum, added, rehearses);
    } else {
      publish_residual(__uint_as_float(terms_.addend) + added, rehearses);
    }
  }

  // Publishes a row of the residual stream after the product, and the same row as an input of the
  // next product.
  __device__ void publish_residual(float value, bool rehearses) {
    uint32_t* const target = residual_copy();
    publish_pairs(target + (is_mid() ? layout().weighted_mid : layout().weighted_in), hidden_size(),
                  value * terms_.factor, output_.is_valid);
    if (output_.is_valid) publish(residual_word(target), value);
    share_square(output_.is_valid ? value : 0.0f, squares_after(), rehearses);
  }

  // Publishes a row of a part of the residual stream after the product, as an input of the next
  // product.
  __device__ void publish_part(int part, float value) const {
    const int first = is_mid() ? layout().weighted_mid : layout().weighted_in;
    publish_pairs(residual_copy() + first + part * hidden_size() / 2, 2 * hidden_size(),
                  value * terms_.factor, output_.is_valid);
  }
  // Publishes a row of what the product adds to the residual stream. sum: before the norm of that.
  // The row of the stream follows when the norm's scale is known: only whoever adds to the row next
  // needs it.
  __device__ void publish_added(float sum, float added, bool rehearses) {
    const float stream = __uint_as_float(terms_.addend);
    publish_part(1, added);
    StreamRow row;
    if (output_.is_valid) {
      row = {.sum = sum, .stream = stream, .added = added};
      if (has_post_norms()) {
        unsettled_ = {.row = output_.row, .stream = stream};
      } else {
        publish(residual_word(residual_copy()), stream + added);
      }
    }
    share_square(row, squares_after(), rehearses);
  }
  // Publishes the row of the residual stream that the product before has added to: with norms of
  // what the halves add, a lane has one at most (plan_fused_decode).
  __device__ void settle_residual() {
    if (unsettled_.row < 0) return;
    const int residual =
        position_.product == kGateUp ? layout().residual_mid : layout().residual_in;
    publish(words(residual) + token_ * hidden_size() + unsettled_.row,
            unsettled_.stream + added_scale_ * post_term_);
    unsettled_.row = -1;
  }

  // Adds to the block's share of a sum of squares, or publishes the share of a claimed item: a
  // block claims at most one item of such a product.
  __device__ void share_square(const Row& row, uint32_t* shares, bool rehearses) {
    const int item = output_.row / kUnitRows -
                     arguments_.products[kDown].static_items * static_cast<int>(gridDim.x);
    const bool is_claimed = output_.is_valid && item >= 0;
    const Squares square = squares_of(row);
    if (!is_claimed) squares_ += square;
    const int claimed_item = __reduce_max_sync(kFullWarp, is_claimed ? item : -1);
    if (claimed_item >= 0 || rehearses) {
      publish_share(shares, is_claimed ? square : Squares{}, claimed_squares_of(claimed_item),
                    !rehearses);
    }
  }
  // The word of the lane's row of the residual stream after this product, in residual_copy().
  __device__ uint32_t* residual_word(uint32_t* copy) const {
    return copy + (is_mid() ? layout().residual_mid : layout().residual_in) +
           token_ * hidden_size() + output_.row;
  }
  // The words of the exchange that hold the residual stream after this product.
  __device__ uint32_t* residual_copy() const {
    return exchange(is_mid() ? position_.layer : position_.layer + 1);
  }
  // Where the squares of the residual stream after this product are shared.
  __device__ uint32_t* squares_after() const {
    return residual_copy() + (is_mid() ? layout().squares_mid : layout().squares_in);
  }
  __device__ void publish_share(uint32_t* shares, const Squares& squares, int share,
                                bool is_valid) const {
    publish_squares<kTokens>(shares, num_tokens(), token_, squares, share, is_valid);
  }

  __device__ bool has_post_norms() const {
    return computes_any_block(kInstance) && arguments_.block.has_post_norms != 0;
  }
  __device__ int half() const { return is_mid() ? 0 : 1; }

  // Publishes a rounded value of each row in all replicas of [num_tokens][num_features / 2] pairs.
  // Every lane stores the values of all rows of its group in one replica, with one store of 16
  // bytes.
  __device__ void publish_pairs(uint32_t* pairs, int num_features, float value,
                                bool is_valid) const {
    const uint32_t pair = pack_pair<Element>(value, __shfl_down_sync(kFullWarp, value, 1));
    static_assert(kUnitRows == 8 && exchange_replicas(kTokens) <= kUnitRows);
    const int place = reread_lane_index() % kUnitRows;  // in the group, and the replica
    const int first_lane = reread_lane_index() - place;
    const auto pair_at = [&](int i) {
      return __shfl_sync(kFullWarp, pair, first_lane + 2 * pair_place<kTokens>(i));
    };
    const uint4 group = make_uint4(pair_at(0), pair_at(1), pair_at(2), pair_at(3));
    if (!is_valid || place >= exchange_replicas(kTokens)) return;
    const int first_row = output_.row - place;
    publish(pairs + ((place * num_tokens() + token_) * num_features + first_row) / 2, group);
  }

  __device__ void wait_for_input_scale() {
    if (scale_ != 0.0f) return;
    const int squares = position_.product == kGateUp ? layout().squares_mid : layout().squares_in;
    if constexpr (kHasParts) {
      const bool is_normed = arguments_.block.has_pre_norms != 0 || position_.product == kLmHead;
      const auto scales =
          wait_for_stream_scales<kTokens>(arguments_, words(squares), token_, is_normed);
      scale_ = scales.stream;
      added_scale_ = scales.added;
      settle_residual();
    } else {
      scale_ = wait_for_scale<kTokens>(arguments_, words(squares), token_);
    }
  }

  // For a product whose inputs, and so whose sums, lack RMSNorm's scale.
  __device__ void finish_normed(float value, bool rehearses) {
    if (scales_first()) value *= scale_;
    bool is_used = true;
    if (position_.product == kQkv) {
      if constexpr (!is_llama(kInstance)) value = qkv_row().altered(value, terms_);
      value = qkv_row().publish_rotated(value, half_of_item());
      is_used = qkv_row().is_stored();
    }
    if (!scales_first()) {
      if (!rehearses && __any_sync(kFullWarp, is_used)) wait_for_input_scale();
      value *= scale_;
    }
    if (position_.product == kGateUp) {
      // From the other group of the pair.
      const float up = __shfl_xor_sync(kFullWarp, value, kUnitRows);
      publish_pairs(words(layout().hidden), arguments_.products[kDown].features,
                    activated(value) * up, output_.is_valid && half_of_item() == 0);
    } else if (output_.is_valid && position_.product == kLmHead) {
      if constexpr (!is_llama(kInstance)) {
        const float softcap = arguments_.block.logit_softcap;
        if (softcap > 0.0f) value = softcap * tanh_of(value / softcap);
      }
      arguments_
          .logits[static_cast<int64_t>(token_) * arguments_.products[kLmHead].rows + output_.row] =
          value;
    } else if (position_.product == kQkv && is_used) {
      qkv_row().store(value);
    }
  }

  __device__ float activated(float gate) const {
    if constexpr (!is_llama(kInstance)) {
      if (arguments_.block.has_gelu != 0) return gelu_tanh(gate);
    }
    return silu(gate);
  }

  __device__ bool scales_first() const {
    return !attention_applies_scale<kTokens, kInstance>(arguments_);
  }

  __device__ QkvRow<kTokens, kHeadDim, kInstance> qkv_row() const {
    return {arguments_, signals_, position_.layer, token_, output_.row, output_.is_valid};
  }

  const FusedDecodeArguments& arguments_;
  Signals& signals_;
  int token_;
  FusedPosition position_;
  // State of the current product.
  Squares squares_;
  float scale_;  // of its inputs; 0: not known yet
  // State of the current pass.
  Output output_;
  RowTerms terms_;
  // State for the norm of what a half adds to the residual stream.
  float post_term_ = 0.0f;  // the norm's weight, then times the row's element
  // State of a stream in two parts: the row that settle_residual() adds post_term_ to, and the
  // norm's scale.
  struct Unsettled {
    int row;  // below 0: none
    float stream;
  };
  Unsettled unsettled_{.row = -1, .stream = 0.0f};
  float added_scale_ = 0.0f;
};

}  // namespace tessera
