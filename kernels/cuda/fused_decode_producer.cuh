// The warp of the fused decode kernel that fills the rings: lane w fills that of warp w.
//
// The lanes go through the step together, each with its own chunks of features and units of keys.
// A lane that has to wait makes the others wait. That costs less than eight lanes that each take
// their own way through this code, one after the other.
#pragma once

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/fused_decode_block.cuh"

namespace tessera {

// Copies units into a ring.
template <typename Signals>
class RingFiller {
 public:
  // rings: the first one's data.
  __device__ RingFiller(const FusedDecodeArguments& arguments, Signals& signals,
                        unsigned char* rings)
      : signals_(signals),
        warp_(lane_index()),
        num_stages_(arguments.num_stages),
        ring_(rings + warp_ * num_stages_ * kUnitBytes) {}

  __device__ void weights(const CUtensorMap* map, int row, int panel) {
    uint64_t* const full = next();
    copy_weight_box_async(data(), map, full, row, panel);
    advance();
  }
  __device__ void page_rows(const CUtensorMap* map, int row, int kv_head, int page) {
    uint64_t* const full = next();
    copy_page_rows_async(data(), map, full, row, kv_head, page);
    advance();
  }

 private:
  __device__ void* data() const { return ring_ + position_.stage * kUnitBytes; }

  // Waits until there is room and not too much on its way.
  __device__ uint64_t* next() {
    if (in_flight_ == kUnitsInFlight) {
      mbarrier_wait(&signals_.full[warp_][arrived_.stage], arrived_.parity);
      arrived_.advance(1, num_stages_);
    } else {
      ++in_flight_;
    }
    mbarrier_wait(&signals_.empty[warp_][position_.stage], position_.parity);
    uint64_t* const full = &signals_.full[warp_][position_.stage];
    mbarrier_expect_bytes(full, kUnitBytes);
    return full;
  }
  __device__ void advance() { position_.advance(1, num_stages_); }

  Signals& signals_;
  int warp_;
  int num_stages_;
  unsigned char* ring_;
  RingPosition position_{.stage = 0, .parity = 1};  // an unused unit is empty
  RingPosition arrived_;                            // the oldest copy that may be on its way
  int in_flight_ = 0;
};

// The units of a product, in the order of FusedStep::multiply().
template <typename Signals>
__device__ void fill_product(const FusedDecodeArguments& arguments, FusedProductIndex index,
                             int rotation, const CUtensorMap* map, RingFiller<Signals>& filler) {
  prefetch_tensor_map(map);
  const FusedProduct& product = arguments.products[index];
  const auto num_blocks = static_cast<int>(gridDim.x);
  const FusedShare share = fused_share(product, rotation, static_cast<int>(blockIdx.x), num_blocks);
  const int num_groups = share.count << product.is_paired;
  const int num_chunks = product.num_chunks();
  for (int pass = 0; pass < num_groups; pass += kPassGroups) {
    const int end = min(pass + kPassGroups, num_groups);
    for (int chunk = lane_index(); chunk < num_chunks; chunk += kFusedWarps) {
      for (int group = pass; group < end; ++group) {
        const int item = share.first + (group >> product.is_paired) * num_blocks;
        const int row = product.row(item, group & product.is_paired);
        filler.weights(map, row, chunk * (kUnitFeatures / 64));
      }
    }
  }
}

// The keys and values of a layer, in the order of FusedAttention.
template <int kTokens, int kHeadDim>
__device__ void fill_attention(const FusedDecodeArguments& arguments,
                               FusedSignals<kTokens, kHeadDim>& signals, const CUtensorMap* keys,
                               const CUtensorMap* values,
                               RingFiller<FusedSignals<kTokens, kHeadDim>>& filler) {
  constexpr int kUnitTokens = unit_tokens(kHeadDim);
  prefetch_tensor_map(keys);
  prefetch_tensor_map(values);
  mbarrier_wait(&signals.planned, 0);
  const AttentionArguments& attention = arguments.attention;
  for (int i = 0; i < signals.num_pieces; ++i) {
    const DecodePiece& piece = signals.pieces[i];
    const PieceUnits units = PieceUnits::of<kUnitTokens>(piece, lane_index());
    // The piece's pages in shared memory begin with this one.
    const int first = first_page(attention, piece);
    const int place = signals.first_pages[i];
    const int32_t* const table =
        attention.block_tables + static_cast<int64_t>(piece.sequence) * attention.max_pages;
    for (int unit = units.first; unit < units.end; unit += kFusedWarps) {
      const int token = unit * kUnitTokens;
      const auto page_index = static_cast<int>(attention.page_size.divide(token));
      const int row = token - page_index * static_cast<int>(attention.page_size.divisor());
      const int page =
          place < kMaxFusedPages ? signals.pages[place + page_index - first] : table[page_index];
      filler.page_rows(keys, row, piece.kv_head, page);
      filler.page_rows(values, row, piece.kv_head, page);
    }
  }
}

// All units of the step that warp `lane` computes with, in order. Called by the first kFusedWarps
// lanes.
template <int kTokens, int kHeadDim>
__device__ void fill_rings(const FusedDecodeArguments& arguments,
                           FusedSignals<kTokens, kHeadDim>& signals, unsigned char* rings) {
  RingFiller filler(arguments, signals, rings);
  const CUtensorMap* maps = arguments.maps;
  int rotation = 0;
  for (int layer = 0; layer < arguments.num_layers; ++layer) {
    fill_product(arguments, kQkv, rotation, maps + kQkvMap, filler);
    fill_attention(arguments, signals, maps + kKeysMap, maps + kValuesMap, filler);
    fill_product(arguments, kOutput, rotation, maps + kOutputMap, filler);
    fill_product(arguments, kGateUp, rotation, maps + kGateUpMap, filler);
    fill_product(arguments, kDown, rotation, maps + kDownMap, filler);
    maps += kNumLayerMaps;
    rotation = next_rotation(arguments, rotation);
  }
  fill_product(arguments, kHead, rotation, maps, filler);
}

}  // namespace tessera
