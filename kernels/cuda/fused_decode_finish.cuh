// What becomes of the sums of the fused decode kernel's products: rotated queries, keys and values,
// the residual stream, the feed-forward network's hidden features, logits.
#pragma once

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/fused_decode_block.cuh"
#include "kernels/cuda/fused_decode_exchange.cuh"
#include "kernels/cuda/fused_decode_squares.cuh"
#include "kernels/cuda/silu.cuh"

namespace tessera {

// One warp's part: a token. It walks the products as the warps that compute do, and is called by
// all lanes together.
template <int kTokens, int kHeadDim>
class FusedFinish {
 public:
  using Element = __nv_bfloat16;
  using Signals = FusedSignals<kTokens, kHeadDim>;

  // token: num_tokens or more for none.
  __device__ FusedFinish(const FusedDecodeArguments& arguments, Signals& signals, int token)
      : arguments_(arguments),
        signals_(signals),
        token_(token),
        hidden_size_(arguments.products[kQkv].features) {}

  __device__ void begin_product(const FusedPosition& position) {
    position_ = position;
    squares_ = claimed_squares_ = scale_ = 0.0f;
    claimed_item_ = -1;
  }

  // Asks for what the pass will need besides its sums. Most often it is there; finishing asks again
  // for what was missing.
  __device__ void begin_pass(const LanePass& pass) {
    const int group = reread_lane_index() / kUnitRows;
    const FusedProduct& product = arguments_.products[position_.product];
    output_ = {.row = pass.row,
               .half = group & product.is_paired,
               .is_valid = finishes() && group < pass.num_groups && pass.row < product.rows};
    if (position_.ends_in_residual()) {
      addend_ = {.residual = 0, .norm_weight = 0.0f};
      if (output_.is_valid) load_addend();
    } else if (finishes() && scale_ == 0.0f) {
      shares_.begin(arguments_.products[kDown].num_claimed(static_cast<int>(gridDim.x)));
      shares_.ask(square_words());
    }
  }

  // Waits for the sums of all warps and leaves the pass's outputs.
  __device__ void finish_pass(const RingPosition& place) {
    if (finishes()) {
      wait_for_others();
      mbarrier_wait(&signals_.sums_full[place.stage], place.parity);
      float sum = 0.0f;
#pragma unroll
      for (int from = 0; from < kFusedWarps; ++from) {
        sum += signals_.sums[place.stage][from][token_][reread_lane_index()];
      }
      if (position_.ends_in_residual()) {
        finish_residual(sum);
      } else {
        finish(sum * scale_);
      }
    }
    __syncwarp();
    if (reread_lane_index() == 0) mbarrier_arrive(&signals_.sums_free[place.stage]);
  }

  __device__ void end_product() {
    if (!finishes() || !position_.ends_in_residual()) return;
    uint32_t* const target = position_.product == kOutput
                                 ? words(layout().squares_mid)
                                 : copy(position_.layer + 1) + layout().squares_in;
    publish_squares(target, token_, squares_, own_squares());
    claimed_item_ = __reduce_max_sync(kFullWarp, claimed_item_);
    if (claimed_item_ >= 0) {
      publish_squares(target, token_, claimed_squares_, claimed_squares_of(claimed_item_));
    }
  }

 private:
  // Whose sum a lane finishes, in group lane / 8 of a pass.
  struct Output {
    int row;   // of the product
    int half;  // of the item
    bool is_valid;
  };
  // What a product that ends in the residual stream needs besides its sums.
  struct Addend {
    uint32_t residual;  // word
    float norm_weight;  // of the next product's input
  };

  __device__ bool finishes() const { return token_ < arguments_.num_tokens; }
  __device__ const FusedExchangeLayout& layout() const { return arguments_.layout; }
  __device__ uint32_t* copy(int layer) const { return arguments_.copies[layer % 2]; }
  __device__ uint32_t* words(int offset) const { return copy(position_.layer) + offset; }
  __device__ const FusedLayerPointers& layer(int layer) const { return signals_.layers[layer % 2]; }

  __device__ void load_addend() {
    const int layer_index = position_.layer;
    const float* norm_weight = arguments_.norm;
    if (position_.product == kOutput) {
      norm_weight = layer(layer_index).post_attention_layernorm;
    } else if (layer_index + 1 < arguments_.num_layers) {
      // Then the next layer's pointers are there.
      mbarrier_wait(&signals_.cleared, layer_index % 2);
      norm_weight = layer(layer_index + 1).input_layernorm;
    }
    addend_ = {.residual = load_word(residual_before()), .norm_weight = norm_weight[output_.row]};
  }
  __device__ const uint32_t* residual_before() const {
    return words(position_.product == kOutput ? layout().residual_in : layout().residual_mid) +
           token_ * hidden_size_ + output_.row;
  }

  // Waits for what the pass needs of other blocks besides its sums.
  __device__ void wait_for_others() {
    if (!position_.ends_in_residual()) {
      if (scale_ != 0.0f) return;
      scale_ =
          root_mean_square_scale(shares_.sum(square_words()), hidden_size_, arguments_.epsilon);
      return;
    }
    poll([&] {
      load_if_missing(addend_.residual, residual_before());
      return is_missing(addend_.residual);
    });
    // What the others ask for after these words must have been cleared before.
    if (position_.product == kOutput) mbarrier_wait(&signals_.cleared, position_.layer % 2);
  }

  // Adds to the residual stream.
  __device__ void finish_residual(float sum) {
    const bool is_mid = position_.product == kOutput;
    const float value = __uint_as_float(addend_.residual) + sum;
    const float weighted = value * addend_.norm_weight;
    const float next = __shfl_down_sync(kFullWarp, weighted, 1);
    if (!output_.is_valid) return;
    uint32_t* const target = copy(is_mid ? position_.layer : position_.layer + 1);
    const int index = token_ * hidden_size_ + output_.row;
    if (index % 2 == 0) {
      publish(target + (is_mid ? layout().weighted_mid : layout().weighted_in) + index / 2,
              pack_pair<Element>(weighted, next));
    }
    publish(target + (is_mid ? layout().residual_mid : layout().residual_in) + index, value);
    // Blocks claim one such item each, at most.
    const int item = output_.row / kUnitRows -
                     arguments_.products[kDown].static_items * static_cast<int>(gridDim.x);
    if (item < 0) {
      squares_ += value * value;
    } else {
      claimed_squares_ = value * value;
      claimed_item_ = item;
    }
  }

  __device__ const uint32_t* square_words() const {
    return words(position_.product == kGateUp ? layout().squares_mid : layout().squares_in) +
           token_ * kSquareShares;
  }

  __device__ void finish(float value) {
    // Of the other group of a pair.
    const float other = __shfl_xor_sync(kFullWarp, value, kUnitRows);
    if (position_.product == kGateUp) {
      const float hidden = silu(value) * other;
      const float next = __shfl_down_sync(kFullWarp, hidden, 1);
      if (!output_.is_valid || output_.half != 0 || output_.row % 2 != 0) return;
      publish(
          words(layout().hidden) + (token_ * arguments_.products[kDown].features + output_.row) / 2,
          pack_pair<Element>(hidden, next));
    } else if (!output_.is_valid) {
      return;
    } else if (position_.product == kQkv) {
      finish_qkv(value, other);
    } else {
      arguments_
          .logits[static_cast<int64_t>(token_) * arguments_.products[kHead].rows + output_.row] =
          value;
    }
  }

  // Rotates queries and keys, stores keys and values.
  __device__ void finish_qkv(float value, float other_half) {
    const AttentionArguments& attention = arguments_.attention;
    constexpr int kHalf = kHeadDim / 2;
    const int head = output_.row / kHeadDim;
    const int column = output_.row - head * kHeadDim;
    const int kv_head = head - attention.num_heads;  // keys, then values
    if (kv_head < attention.num_kv_heads) {
      const float2 rotation = signals_.rotations[token_][column % kHalf];
      value = value * rotation.x + (output_.half == 0 ? -other_half : other_half) * rotation.y;
    }
    publish(words(layout().qkv) + token_ * arguments_.products[kQkv].rows + output_.row, value);
    if (kv_head < 0) return;
    const bool is_key = kv_head < attention.num_kv_heads;
    const int64_t of_page = is_key ? kv_head : kv_head - attention.num_kv_heads;
    const auto page_size = static_cast<int64_t>(attention.page_size.divisor());
    const FusedLayerPointers& pointers = layer(position_.layer);
    Element* const pages = is_key ? pointers.keys : pointers.values;
    pages[(signals_.page_rows[token_] + of_page * page_size) * kHeadDim + column] =
        from_float<Element>(value);
  }

  const FusedDecodeArguments& arguments_;
  Signals& signals_;
  int token_;
  int hidden_size_;
  FusedPosition position_;
  // Of the product.
  float squares_;
  float claimed_squares_;
  int claimed_item_;
  float scale_;  // of its inputs; 0: not known yet
  SquareWords shares_;
  // Of the pass.
  Output output_;
  Addend addend_;
};

// The warp that finishes a single token's products. The warps that compute need not wait for each
// other then: they may be two passes ahead of it.
template <int kHeadDim>
__device__ void finish_products(const FusedDecodeArguments& arguments,
                                FusedSignals<1, kHeadDim>& signals) {
  FusedFinish<1, kHeadDim> finish(arguments, signals, 0);
  PassWalk passes;
  RingPosition place;  // of sums
  for (FusedPosition position; !position.is_end(); position.advance(arguments.num_layers)) {
    finish.begin_product(position);
    LanePass pass;
    do {
      pass = passes.next(signals);
      if (pass.num_groups == 0) break;
      finish.begin_pass(pass);
      finish.finish_pass(place);
      place.advance(1, kSumBuffers);
    } while (!pass.is_last);
    finish.end_product();
  }
}

}  // namespace tessera
