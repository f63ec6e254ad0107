#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/cuda/dependent_launch.h"
#include "kernels/cuda/fused_decode.h"
#include "kernels/cuda/fused_decode_attention.cuh"
#include "kernels/cuda/fused_decode_producer.cuh"
#include "kernels/cuda/fused_decode_product.cuh"
#include "kernels/cuda/fused_decode_squares.cuh"
#include "kernels/cuda/rotation.cuh"
#include "kernels/cuda/silu.cuh"

namespace tessera {
namespace {

__device__ inline void prefetch_to_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// One of the warps that compute.
template <int kTokens, int kHeadDim>
class FusedStep {
 public:
  using Element = __nv_bfloat16;
  using Signals = FusedSignals<kTokens, kHeadDim>;

  __device__ FusedStep(const FusedDecodeArguments& arguments, Signals& signals,
                       const UnitRing& ring, unsigned char* inputs)
      : arguments_(arguments),
        signals_(signals),
        ring_(ring),
        input_memory_(inputs),
        hidden_size_(arguments.products[kQkv].features) {}

  // Every product runs through the same code: what is executed once a layer has to stay in the
  // instruction cache, and the largest part of this code is the same for all.
  __device__ void run() {
    start();
    constexpr int kLayerProducts = kHead;  // those before it
    const int num_products = arguments_.num_layers * kLayerProducts + 1;
#pragma unroll 1
    for (int i = 0; i < num_products; ++i) {
      multiply();
      if (index_ == kQkv) attend();
      if (++index_ == kHead && layer_ + 1 < arguments_.num_layers) index_ = kQkv;
      if (index_ == kQkv || index_ == kHead) {
        ++layer_;
      }
    }
  }

 private:
  __device__ uint32_t* copy(int layer) const { return arguments_.copies[layer % 2]; }
  __device__ uint32_t* words(int offset) const { return copy(layer_) + offset; }
  __device__ const FusedExchangeLayout& layout() const { return arguments_.layout; }
  __device__ const FusedLayerPointers& layer(int layer) const { return signals_.layers[layer % 2]; }

  // What needs no other block.
  __device__ void start() {
    const auto thread = static_cast<int>(threadIdx.x);
    if (warp_index() == kFusedWarps - 1) plan();
    if (warp_index() < arguments_.num_tokens) embed(warp_index());
    constexpr int kHalf = kHeadDim / 2;
    for (int i = thread; i < arguments_.num_tokens * kHalf; i += kFusedConsumers) {
      signals_.rotations[i / kHalf][i % kHalf] =
          rotation_of(arguments_.positions[i / kHalf], arguments_.inverse_frequencies[i % kHalf]);
    }
    if (thread < arguments_.num_tokens) {
      const AttentionArguments& attention = arguments_.attention;
      const auto page_size = static_cast<int>(attention.page_size.divisor());
      const int slot = arguments_.kv_slots[thread];
      signals_.page_rows[thread] =
          static_cast<int64_t>(slot / page_size) * attention.num_kv_heads * page_size +
          slot % page_size;
    }
    sync_fused_consumers();
    mbarrier_wait(&signals_.planned, 0);
  }

  // The block's share of a token's embedding, the residual stream into the first layer.
  __device__ void embed(int token) {
    const int64_t id = max(arguments_.token_ids[token], 0);  // kNonFiniteLogits is below 0
    const Element* const row = arguments_.embed_tokens + id * hidden_size_;
    const int vectors = hidden_size_ / 4;
    const auto num_blocks = static_cast<int>(gridDim.x);
    const int share = (vectors + num_blocks - 1) / num_blocks;
    const int begin = static_cast<int>(blockIdx.x) * share;
    float squares = 0.0f;
    for (int i = begin + lane_index(); i < min(begin + share, vectors); i += kWarpSize) {
      const auto vector = load_vector<4>(row, i);
      const auto weights = load_vector<4>(layer(0).input_layernorm, i);
      float values[4];
      float weighted[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        values[j] = as_float(vector.values[j]);
        weighted[j] = values[j] * weights.values[j];
        squares += values[j] * values[j];
      }
      publish(words(layout().residual_in) + token * hidden_size_ + i * 4,
              make_uint4(__float_as_uint(values[0]), __float_as_uint(values[1]),
                         __float_as_uint(values[2]), __float_as_uint(values[3])));
      publish(words(layout().weighted_in) + token * hidden_size_ / 2 + i * 2,
              make_uint2(pack_pair<Element>(weighted[0], weighted[1]),
                         pack_pair<Element>(weighted[2], weighted[3])));
    }
    publish_squares(words(layout().squares_in), token, squares, own_squares());
    const auto block = static_cast<int>(blockIdx.x);
    if (block < num_claimed_items()) {  // nobody claims embeddings
      publish_squares(words(layout().squares_in), token, 0.0f, claimed_squares_of(block));
    }
  }

  // The block's share of attention, the same in all layers.
  __device__ void plan() {
    DecodeItems<1> items(arguments_.attention, arguments_.division);
    items.divide();
    const AttentionArguments& attention = arguments_.attention;
    DecodePiece piece;
    int count = 0;
    int num_pages = 0;
    for (; items.next(piece); ++count) {
      const int begin = first_page(attention, piece);
      const int last_token =
          max(min(piece.tile_end * kDecodeTileTokens, piece.context_length) - 1, 0);
      const int end = static_cast<int>(attention.page_size.divide(last_token)) + 1;
      const bool fits = num_pages + end - begin <= kMaxFusedPages;
      const int32_t* const table =
          attention.block_tables + static_cast<int64_t>(piece.sequence) * attention.max_pages;
      for (int page = begin + lane_index(); fits && page < end; page += kWarpSize) {
        signals_.pages[num_pages + page - begin] = table[page];
      }
      if (lane_index() == 0) {
        signals_.pieces[count] = piece;
        signals_.first_pages[count] = fits ? num_pages : kMaxFusedPages;
      }
      if (fits) num_pages += end - begin;
    }
    __syncwarp();
    if (lane_index() == 0) {
      signals_.num_pieces = count;
      mbarrier_arrive(&signals_.planned);
    }
  }

  __device__ void attend() {
    // All words of the layer before have been read.
    if (lane_index() == 0) mbarrier_arrive(&signals_.left);
    FusedAttention<kTokens, kHeadDim>(arguments_, signals_, copy(layer_), input_memory_).run(ring_);
  }

  // The token whose outputs a warp finishes; num_tokens or more: none. Of a single token, another
  // warp for each product of a layer: who has just finished one comes late to the next.
  __device__ int finished_token(int warp) const {
    if (kTokens > 1) return warp;
    return warp == index_ * (kFusedWarps / kHead) % kFusedWarps ? 0 : 1;
  }

  // The output whose sum a lane finishes, in group lane / 8 of a pass.
  struct Output {
    int token;
    int row;   // of the product
    int half;  // of the item
    bool is_valid;
  };

  __device__ void multiply() {
    const FusedProduct& product = arguments_.products[index_];
    // A product that ends in the residual stream has one pass, seldom more: it keeps no inputs.
    FusedInputs<kTokens> inputs(shared_address(input_memory_), arguments_.input_stride,
                                arguments_.num_tokens, input_words(), product.features,
                                !ends_in_residual());
    const int lane = reread_lane_index();
    const int warp = reread_warp_index();
    const int token = finished_token(warp);
    const bool finishes = token < arguments_.num_tokens;
    float squares = 0.0f;
    float claimed_squares = 0.0f;
    int claimed_item = -1;
    float scale = 0.0f;  // not known yet
    LanePass pass;
    do {
      pass = passes_.next(signals_);
      if (pass.num_groups == 0) break;
      const int group = lane / kUnitRows;
      const Output output{
          .token = token,
          .row = pass.row,
          .half = group & product.is_paired,
          .is_valid = finishes && group < pass.num_groups && pass.row < product.rows};
      // Asked for before the product is computed. Most often it is there; finishing asks again for
      // what was missing.
      Addend addend{.residual = 0, .norm_weight = 0.0f};
      SquareWords shares{};
      if (ends_in_residual()) {
        if (output.is_valid) addend = load_addend(output);
      } else if (finishes && scale == 0.0f) {
        shares.begin(num_claimed_items());
        shares.ask(square_words(token));
      }
      accumulate_pass(inputs, pass.num_groups, ring_, signals_.sums[buffer_][warp]);
      sync_fused_consumers();
      if (finishes) {
        float sum = 0.0f;
#pragma unroll
        for (int from = 0; from < kFusedWarps; ++from) {
          sum += signals_.sums[buffer_][from][token][lane];
        }
        if (ends_in_residual()) {
          const float value = finish_residual(output, addend, sum);
          const int item = output.row / kUnitRows - first_claimed_item();
          const bool is_claimed = output.is_valid && item >= 0;
          squares += is_claimed ? 0.0f : value * value;
          if (is_claimed) {
            claimed_squares = value * value;
            claimed_item = item;
          }
        } else {
          if (scale == 0.0f) {
            scale = root_mean_square_scale(shares.sum(square_words(token)), hidden_size_,
                                           arguments_.epsilon);
          }
          finish(output, sum * scale);
        }
      }
      // Who still reads this buffer arrives at the next barrier only afterwards.
      buffer_ ^= 1;
    } while (!pass.is_last);
    inputs.wait_for_all();
    if (finishes && ends_in_residual()) {
      uint32_t* const target =
          index_ == kOutput ? words(layout().squares_mid) : copy(layer_ + 1) + layout().squares_in;
      publish_squares(target, token, squares, own_squares());
      claimed_item = __reduce_max_sync(kFullWarp, claimed_item);
      if (claimed_item >= 0) {
        publish_squares(target, token, claimed_squares, claimed_squares_of(claimed_item));
      }
    }
  }

  __device__ bool ends_in_residual() const { return index_ == kOutput || index_ == kDown; }

  __device__ const uint32_t* input_words() const {
    if (index_ == kOutput) return words(layout().attention_out);
    if (index_ == kDown) return words(layout().hidden);
    return words(index_ == kGateUp ? layout().weighted_mid : layout().weighted_in);
  }

  // What a product that ends in the residual stream needs besides its sums.
  struct Addend {
    uint32_t residual;  // word
    float norm_weight;  // of the next product's input
  };
  __device__ Addend load_addend(const Output& output) const {
    const float* norm_weight = arguments_.norm;
    if (index_ == kOutput) {
      norm_weight = layer(layer_).post_attention_layernorm;
    } else if (layer_ + 1 < arguments_.num_layers) {
      mbarrier_wait(&signals_.cleared, layer_ % 2);  // then the next layer's pointers are there
      norm_weight = layer(layer_ + 1).input_layernorm;
    }
    return {.residual = load_word(residual_before(output)), .norm_weight = norm_weight[output.row]};
  }
  __device__ const uint32_t* residual_before(const Output& output) const {
    return words(index_ == kOutput ? layout().residual_in : layout().residual_mid) +
           output.token * hidden_size_ + output.row;
  }

  // Adds to the residual stream and returns its new value; 0 in lanes without an output. Called by
  // whole warps.
  __device__ float finish_residual(const Output& output, Addend addend, float sum) {
    const bool is_mid = index_ == kOutput;
    // What the others ask for after these words must have been cleared before.
    if (is_mid) mbarrier_wait(&signals_.cleared, layer_ % 2);
    poll([&] {
      load_if_missing(addend.residual, residual_before(output));
      return is_missing(addend.residual);
    });
    const float value = __uint_as_float(addend.residual) + sum;
    const float weighted = value * addend.norm_weight;
    const float next = __shfl_down_sync(kFullWarp, weighted, 1);
    if (!output.is_valid) return 0.0f;
    uint32_t* const target = copy(is_mid ? layer_ : layer_ + 1);
    const int index = output.token * hidden_size_ + output.row;
    if (index % 2 == 0) {
      publish(target + (is_mid ? layout().weighted_mid : layout().weighted_in) + index / 2,
              pack_pair<Element>(weighted, next));
    }
    publish(target + (is_mid ? layout().residual_mid : layout().residual_in) + index, value);
    return value;
  }

  // Items of the products that end in the residual stream which blocks claim; one each, at most.
  __device__ int first_claimed_item() const {
    return arguments_.products[kDown].static_items * static_cast<int>(gridDim.x);
  }
  __device__ int num_claimed_items() const {
    return arguments_.products[kDown].num_items - first_claimed_item();
  }

  __device__ const uint32_t* square_words(int token) const {
    return words(index_ == kGateUp ? layout().squares_mid : layout().squares_in) +
           token * kSquareShares;
  }

  // Called by whole warps.
  __device__ void finish(const Output& output, float value) {
    // Of the other group of a pair.
    const float other = __shfl_xor_sync(kFullWarp, value, kUnitRows);
    if (index_ == kGateUp) {
      const float hidden = silu(value) * other;
      const float next = __shfl_down_sync(kFullWarp, hidden, 1);
      if (!output.is_valid || output.half != 0 || output.row % 2 != 0) return;
      publish(words(layout().hidden) +
                  (output.token * arguments_.products[kDown].features + output.row) / 2,
              pack_pair<Element>(hidden, next));
    } else if (!output.is_valid) {
      return;
    } else if (index_ == kQkv) {
      finish_qkv(output, value, other);
    } else {
      arguments_.logits[static_cast<int64_t>(output.token) * arguments_.products[kHead].rows +
                        output.row] = value;
    }
  }

  // Rotates queries and keys, stores keys and values.
  __device__ void finish_qkv(const Output& output, float value, float other_half) {
    const AttentionArguments& attention = arguments_.attention;
    constexpr int kHalf = kHeadDim / 2;
    const int head = output.row / kHeadDim;
    const int column = output.row - head * kHeadDim;
    const int kv_head = head - attention.num_heads;  // keys, then values
    if (kv_head < attention.num_kv_heads) {
      const float2 rotation = signals_.rotations[output.token][column % kHalf];
      value = value * rotation.x + (output.half == 0 ? -other_half : other_half) * rotation.y;
    }
    publish(words(layout().qkv) + output.token * arguments_.products[kQkv].rows + output.row,
            value);
    if (kv_head < 0) return;
    const bool is_key = kv_head < attention.num_kv_heads;
    const int64_t of_page = is_key ? kv_head : kv_head - attention.num_kv_heads;
    const auto page_size = static_cast<int64_t>(attention.page_size.divisor());
    Element* const pages = is_key ? layer(layer_).keys : layer(layer_).values;
    pages[(signals_.page_rows[output.token] + of_page * page_size) * kHeadDim + column] =
        from_float<Element>(value);
  }

  const FusedDecodeArguments& arguments_;
  Signals& signals_;
  UnitRing ring_;
  unsigned char* input_memory_;
  int hidden_size_;
  int index_ = kQkv;  // of the product
  int layer_ = 0;
  PassWalk passes_;
  int buffer_ = 0;  // of sums
};

// Brings the next norms' weights to L2, where whoever finishes a product will not wait for them.
__device__ inline void prefetch_norm_weights(const FusedLayerPointers& layer,
                                             const float* next_norm, int hidden_size, int thread,
                                             int num_threads) {
  constexpr int kLineElements = 32;  // 128 bytes
  for (int i = thread * kLineElements; i < hidden_size; i += num_threads * kLineElements) {
    prefetch_to_l2(layer.post_attention_layernorm + i);
    prefetch_to_l2(next_norm + i);
  }
}

// The warp that does beside the others what would make them wait for memory: it clears the words of
// the layer before (the fence takes as long as a product's inputs need to arrive) and fetches what
// the next layer's norms and pages are.
template <int kTokens, int kHeadDim>
__device__ void help_consumers(const FusedDecodeArguments& arguments,
                               FusedSignals<kTokens, kHeadDim>& signals) {
  const int thread = static_cast<int>(blockIdx.x) * kWarpSize + lane_index();
  const int num_threads = static_cast<int>(gridDim.x) * kWarpSize;
  const auto clear = [&](uint32_t* copy, int words) {
    clear_words(copy, words, thread, num_threads);
    const int partial_words = 2 * fused_partial_words(arguments.attention.group, kHeadDim);
    clear_words(copy + arguments.partials + static_cast<int>(blockIdx.x) * partial_words,
                partial_words, lane_index(), kWarpSize);
  };
  for (uint32_t* const copy : arguments.used_copies) clear(copy, arguments.used_words);
  clear_words(arguments.used_claims, fused_claim_words(arguments.num_layers), thread, num_threads);
  for (int layer = 0; layer < arguments.num_layers; ++layer) {
    const bool is_last = layer + 1 == arguments.num_layers;
    const FusedLayerPointers next = arguments.layers[is_last ? layer : layer + 1];
    prefetch_norm_weights(signals.layers[layer % 2],
                          is_last ? arguments.norm : next.input_layernorm,
                          arguments.products[kQkv].features, thread, num_threads);
    mbarrier_wait(&signals.left, layer % 2);
    if (lane_index() == 0) signals.layers[(layer + 1) % 2] = next;
    if (layer > 0) clear(arguments.copies[(layer + 1) % 2], arguments.layout.size);
    __threadfence();
    __syncwarp();
    if (lane_index() == 0) mbarrier_arrive(&signals.cleared);
  }
  launch_next_kernel();  // it finds room when the first blocks leave
}

template <int kTokens, int kHeadDim>
__device__ void fused_decode_block(const FusedDecodeArguments& launched) {
  using Signals = FusedSignals<kTokens, kHeadDim>;
  extern __shared__ unsigned char shared_bytes[];
  __shared__ Signals signals;
  // What stays in registers over a whole step would push out what is computed with. From shared
  // memory the compiler fetches each argument again where it is used.
  __shared__ alignas(FusedDecodeArguments) unsigned char argument_bytes[sizeof(launched)];
  const auto& arguments = *reinterpret_cast<const FusedDecodeArguments*>(argument_bytes);
  static_assert(sizeof(signals) + sizeof(argument_bytes) <= fused_static_bytes(kTokens));
  // The swizzle counts from multiples of 1024 bytes.
  unsigned char* const rings = shared_bytes + (-shared_address(shared_bytes) & 1023u);
  const int warp = warp_index();
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < kFusedWarps * kMaxFusedStages) {
    mbarrier_init(&signals.full[0][0] + thread, 1);
    mbarrier_init(&signals.empty[0][0] + thread, 1);
    if (thread < kPassSlots) {
      mbarrier_init(&signals.pass_told[thread], 1);
      mbarrier_init(&signals.pass_known[thread], kFusedWarps);
    }
    if (thread == 0) {
      mbarrier_init(&signals.planned, 1);
      mbarrier_init(&signals.left, kFusedWarps);
      mbarrier_init(&signals.cleared, 1);
    }
    fence_barrier_init();
  }
  static_assert(sizeof(launched) % sizeof(uint32_t) == 0 &&
                sizeof(launched) / sizeof(uint32_t) <= kFusedThreads);
  if (thread < static_cast<int>(sizeof(launched) / sizeof(uint32_t))) {
    reinterpret_cast<uint32_t*>(argument_bytes)[thread] =
        reinterpret_cast<const uint32_t*>(&launched)[thread];
  }
  if (thread == 0) signals.layers[0] = launched.layers[0];
  __syncthreads();
  // Up to here, only what is the same in all steps has been read.
  wait_for_previous_results();
  if (warp == kFusedWarps) {
    if (lane_index() < kFusedWarps) fill_rings(arguments, signals, rings);
    return;
  }
  if (warp == kFusedWarps + 1) {
    help_consumers(arguments, signals);
    return;
  }
  const int ring_bytes = arguments.num_stages * kUnitBytes;
  const UnitRing ring{.full = signals.full[warp],
                      .empty = signals.empty[warp],
                      .data = shared_address(rings) + warp * ring_bytes,
                      .num_stages = arguments.num_stages,
                      .position = {}};
  FusedStep<kTokens, kHeadDim>(arguments, signals, ring, rings + kFusedWarps * ring_bytes).run();
}

template <int kTokens, int kHeadDim>
__global__ void __launch_bounds__(kFusedThreads, 1)
    fused_decode_kernel(const __grid_constant__ FusedDecodeArguments arguments) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  __trap();  // the plan declines
#else
  fused_decode_block<kTokens, kHeadDim>(arguments);
#endif
}

// Blocks wait for each other: all must come to run, each on a multiprocessor of its own. They do
// once earlier kernels' blocks have left, which wait for nothing that this kernel does. A
// cooperative launch would not begin before (1.5 us).
template <int kTokens, int kHeadDim>
void launch(const FusedDecodeArguments& arguments, const FusedDecodeLaunch& shape,
            cudaStream_t stream) {
  const auto kernel = fused_decode_kernel<kTokens, kHeadDim>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  shape.shared_bytes));
  const LaunchShape blocks{.blocks = dim3(static_cast<unsigned>(shape.num_blocks)),
                           .threads = kFusedThreads,
                           .shared_bytes = static_cast<size_t>(shape.shared_bytes)};
  launch_dependent(kernel, blocks, stream, arguments);
}

template <int kHeadDim>
void launch_for_tokens(const FusedDecodeArguments& arguments, const FusedDecodeLaunch& shape,
                       cudaStream_t stream) {
  if (arguments.num_tokens == 1) {
    launch<1, kHeadDim>(arguments, shape, stream);
  } else {
    launch<kFusedMaxTokens, kHeadDim>(arguments, shape, stream);
  }
}

}  // namespace

void launch_fused_decode(const FusedDecodeArguments& arguments, const FusedDecodeLaunch& launch,
                         cudaStream_t stream) {
  if (launch.head_dim == 64) return launch_for_tokens<64>(arguments, launch, stream);
  launch_for_tokens<128>(arguments, launch, stream);
}

}  // namespace tessera
