// The warp of the fused decode kernel that fills the rings: its lane w fills the ring of warp w.
//
// The lanes go through the step together, each with the chunks of features and the units of keys of
// its warp. A lane that has to wait makes the other lanes wait. That costs less than if each of the
// eight lanes took its own way through this code: the hardware would run them one after the other.
#pragma once

#include "kernels/cuda/decode_step/block.cuh"
#include "kernels/cuda/decode_step/exchange.cuh"
#include "kernels/cuda/primitives/bulk_copy.cuh"

namespace tessera {

// Copies units into a ring.
template <typename Signals>
class RingFiller {
 public:
  // rings: the data of the first ring.
  __device__ RingFiller(const FusedDecodeArguments& arguments, Signals& signals,
                        unsigned char* rings)
      : num_stages_(arguments.rings.of_warp(lane_index())),
        most_under_way_(min(arguments.most_under_way, num_stages_)),
        full_(&signals.full[arguments.rings.first_stage(lane_index())]),
        empty_(&signals.empty[arguments.rings.first_stage(lane_index())]),
        ring_(rings + arguments.rings.first_stage(lane_index()) * kUnitBytes) {}

  __device__ void weights(const CUtensorMap* map, int row, int panel) {
    uint64_t* const full = next(kUnitBytes);
    copy_weight_box_async(data(), map, full, row, panel, policy_);
    advance();
  }
  template <int kBytes>
  __device__ void page_rows(const CUtensorMap* map, int token, int kv_head, int page) {
    uint64_t* const full = next(kBytes);
    copy_page_rows_async(data(), map, full, token, kv_head, page, policy_);
    advance();
  }

 private:
  __device__ void* data() const { return ring_ + position_.stage * kUnitBytes; }

  // Waits until the next stage is free and fewer than most_under_way units are on their way.
  // Returns the stage's full barrier, which then waits for so many bytes.
  __device__ uint64_t* next(uint32_t bytes) {
    mbarrier_wait(&empty_[position_.stage], position_.parity);
    if (num_under_way_ == most_under_way_) {
      mbarrier_wait(&full_[arriving_.stage], arriving_.parity);
      arriving_.advance(1, num_stages_);
    } else {
      ++num_under_way_;
    }
    uint64_t* const full = &full_[position_.stage];
    mbarrier_expect_bytes(full, bytes);
    return full;
  }
  __device__ void advance() { position_.advance(1, num_stages_); }

  int num_stages_;
  int most_under_way_;
  uint64_t* full_;  // of the first stage
  uint64_t* empty_;
  unsigned char* ring_;
  uint64_t policy_ = evict_first_policy();
  RingPosition position_{.stage = 0, .parity = 1};  // stages begin empty
  RingPosition arriving_;                           // the oldest unit that may be under way
  int num_under_way_ = 0;                           // from there to `position_`, at most
};

// The lanes that fill rings.
inline constexpr uint32_t kFillers = (1u << kFusedWarps) - 1;

// Tells the warps that compute which passes they are about to get.
template <typename Signals>
class PassTeller {
 public:
  __device__ explicit PassTeller(Signals& signals) : signals_(signals) {}

  template <typename RowOf>
  __device__ void tell(int num_groups, bool is_last, const RowOf& row_of) {
    mbarrier_wait(&signals_.pass_known[position_.stage], position_.parity);
    FusedPass& pass = signals_.passes[position_.stage];
    const int lane = lane_index();
    if (lane < kPassGroups) pass.rows[lane] = lane < num_groups ? row_of(lane) : 0;
    if (lane == 0) {
      pass.num_groups = num_groups;
      pass.is_last = is_last ? 1 : 0;
    }
    __syncwarp(kFillers);
    if (arrives_for_warp(lane)) mbarrier_arrive(&signals_.pass_told[position_.stage]);
    position_.advance(1, kPassSlots);
  }

 private:
  Signals& signals_;
  RingPosition position_{.stage = 0, .parity = 1};
};

// Claims items for the block, product after product in the order of the step. The next claim is
// made as soon as one has been taken, so that its answer is there when it is needed.
class ItemClaims {
 public:
  __device__ explicit ItemClaims(const FusedDecodeArguments& arguments)
      : counter_(arguments.claims),
        end_(arguments.claims + fused_claim_words(arguments.num_layers)) {
    ask();
  }

  // The claimed item of the product; num_items or more when none was left.
  __device__ int take(const FusedProduct& product) {
    const int item = product.static_items * static_cast<int>(gridDim.x) +
                     static_cast<int>(__shfl_sync(kFillers, claimed_, 0));
    if (product.claims_many == 0 || item >= product.num_items) counter_ += kClaimStride;
    ask();
    return item;
  }

 private:
  __device__ void ask() {
    static_assert(kMissing + 1 == 0);  // counters start there
    if (lane_index() == 0 && counter_ < end_) claimed_ = atomicAdd(counter_, 1) + 1;
  }

  uint32_t* counter_;  // of the claim on its way
  uint32_t* end_;
  uint32_t claimed_ = 0;
};

// Prefetches a tensor map that will be used soon, so that the first copy with it need not wait.
__device__ inline void prefetch_later_map(const FusedDecodeArguments& arguments,
                                          const CUtensorMap* map) {
  constexpr int kMapsAhead = 3;
  const CUtensorMap* const last = arguments.maps + arguments.num_layers * kNumLayerMaps;
  prefetch_tensor_map(map + kMapsAhead < last ? map + kMapsAhead : last);
}

// Fills the ring with the units of a product, in the order of FusedStep::multiply().
template <typename Signals>
__device__ void fill_product(const FusedDecodeArguments& arguments, FusedProductIndex index,
                             const CUtensorMap* map, RingFiller<Signals>& filler,
                             PassTeller<Signals>& teller, ItemClaims& claims) {
  const FusedProduct& product = arguments.products[index];
  prefetch_later_map(arguments, map);
  const auto num_blocks = static_cast<int>(gridDim.x);
  const int item_groups = 1 << product.is_paired;
  const int num_chunks = product.num_chunks();
  int left = product.static_items * item_groups;  // groups
  int item = static_cast<int>(blockIdx.x);        // the next static one
  bool is_last = false;
  do {
    const int num_static = min(kPassGroups, left);
    left -= num_static;
    int num_groups = num_static;
    int claimed = 0;
    if (left == 0 && num_groups + item_groups <= kPassGroups) {
      claimed = claims.take(product);
      const bool has_claimed = claimed < product.num_items;
      if (has_claimed) num_groups += item_groups;
      is_last = !has_claimed || product.claims_many == 0;
    }
    const auto row_of = [&](int group) {
      return product.row(
          group < num_static ? item + (group >> product.is_paired) * num_blocks : claimed,
          group & product.is_paired);
    };
    teller.tell(num_groups, is_last, row_of);
    for (int chunk = lane_index(); chunk < num_chunks; chunk += kFusedWarps) {
      for (int group = 0; group < num_groups; ++group) {
        filler.weights(map, row_of(group), chunk * (kUnitFeatures / 64));
      }
    }
    item += (num_static >> product.is_paired) * num_blocks;
  } while (!is_last);
}

// Fills the ring with the keys and values of a layer, in the order of FusedAttention.
template <int kTokens, int kHeadDim, FusedInstance kInstance>
__device__ void fill_attention(const FusedDecodeArguments& arguments, int layer,
                               FusedSignals<kTokens, kHeadDim, kInstance>& signals,
                               const CUtensorMap* keys, const CUtensorMap* values,
                               RingFiller<FusedSignals<kTokens, kHeadDim, kInstance>>& filler) {
  constexpr int kUnitTokens = unit_tokens(kHeadDim, kv_element_bytes(kInstance));
  constexpr int kBytes = kv_unit_bytes(kHeadDim, kv_element_bytes(kInstance));
  prefetch_later_map(arguments, keys);
  prefetch_later_map(arguments, values);
  mbarrier_wait(&signals.planned, 0);
  const AttentionArguments& attention = arguments.attention;
  const auto& own = share_of_layer(arguments, signals, layer);
  for (int i = 0; i < own.num_pieces; ++i) {
    const DecodePiece& piece = own.pieces[i];
    const PieceUnits units = PieceUnits::of<kUnitTokens>(piece, lane_index());
    // The piece's pages in shared memory begin with this one.
    const int first = first_page(attention, piece);
    const int place = own.first_pages[i];
    const int32_t* const table =
        attention.block_tables + static_cast<int64_t>(piece.sequence) * attention.max_pages;
    for (int unit = units.first; unit < units.end; unit += kFusedWarps) {
      const int token = unit * kUnitTokens;
      const auto page_index = static_cast<int>(attention.page_size.divide(token));
      const int row = token - page_index * static_cast<int>(attention.page_size.divisor());
      const int page =
          place < kMaxFusedPages ? own.pages[place + page_index - first] : table[page_index];
      filler.template page_rows<kBytes>(keys, row, piece.kv_head, page);
      filler.template page_rows<kBytes>(values, row, piece.kv_head, page);
    }
  }
}

// Fills the ring of warp `lane` with all units that it computes with in this step, in order. Called
// by the first kFusedWarps lanes of one warp.
template <int kTokens, int kHeadDim, FusedInstance kInstance>
__device__ void fill_rings(const FusedDecodeArguments& arguments,
                           FusedSignals<kTokens, kHeadDim, kInstance>& signals,
                           unsigned char* rings) {
  RingFiller filler(arguments, signals, rings);
  PassTeller teller(signals);
  ItemClaims claims(arguments);
  const CUtensorMap* maps = arguments.maps;
  const auto fill = [&](FusedProductIndex index, const CUtensorMap* map) {
    fill_product(arguments, index, map, filler, teller, claims);
  };
  for (int layer = 0; layer < arguments.num_layers; ++layer) {
    fill(kQkv, maps + kQkvMap);
    fill_attention(arguments, layer, signals, maps + kKeysMap, maps + kValuesMap, filler);
    fill(kOProj, maps + kOProjMap);
    fill(kGateUp, maps + kGateUpMap);
    fill(kDown, maps + kDownMap);
    maps += kNumLayerMaps;
  }
  fill(kLmHead, maps);
}

}  // namespace tessera
