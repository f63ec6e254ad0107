#include "kernels/cuda/decode_step/attention.cuh"
#include "kernels/cuda/decode_step/epilogue_warp.cuh"
#include "kernels/cuda/decode_step/helper.cuh"
#include "kernels/cuda/decode_step/kernel.h"
#include "kernels/cuda/decode_step/producer.cuh"
#include "kernels/cuda/decode_step/product.cuh"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/clock.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/register_budget.cuh"
#include "kernels/cuda/primitives/rotation.cuh"

namespace tessera {
namespace {

// One of the warps that compute.
template <int kTokens, int kHeadDim, FusedInstance kInstance>
class FusedStep {
 public:
  using Element = __nv_bfloat16;
  using Signals = FusedSignals<kTokens, kHeadDim, kInstance>;
  static constexpr bool kFinishesOwnPasses = !has_epilogue_warp(kTokens);
  static constexpr int kReplicas = exchange_replicas(kTokens);
  static constexpr int kParts = stream_parts(kInstance);
  static constexpr bool kJoinsParts = joins_parts(kTokens, kInstance);
  using Squares = StreamSquares<kInstance>;

  __device__ FusedStep(const FusedDecodeArguments& arguments, Signals& signals,
                       const UnitRing& ring, unsigned char* inputs)
      : arguments_(arguments),
        signals_(signals),
        ring_(ring),
        input_memory_(inputs),
        hidden_size_(arguments.products[kQkv].features),
        finish_(arguments, signals, warp_index()) {}

  // Every product runs through the same code: what is executed once a layer has to stay in the
  // instruction cache, and the largest part of this code is the same for all.
  __device__ void run() {
    PhaseClock clock(ClockedKernel::kDecodeStep, threadIdx.x == 0, 5 * arguments_.num_layers + 2);
    start();
    clock.end_phase(ClockPhase::kSetUp);
#pragma unroll 1
    for (; !position_.is_end(); position_.advance(arguments_.num_layers)) {
      multiply();
      clock.end_phase(static_cast<ClockPhase>(position_.product), position_.layer);
      if (position_.product != kQkv) continue;
      attend();
      clock.end_phase(ClockPhase::kAttention, position_.layer);
    }
  }

 private:
  __device__ uint32_t* exchange(int layer) const { return arguments_.copies[layer % 2]; }
  __device__ uint32_t* words(int offset) const { return exchange(position_.layer) + offset; }
  __device__ const FusedExchangeLayout& layout() const { return arguments_.layout; }

  // Does at the start what needs no other block.
  __device__ void start() {
    const auto thread = static_cast<int>(threadIdx.x);
    if (warp_index() == kFusedWarps - 1) {
      plan(signals_.first_share, arguments_.attention);
      if constexpr (!is_llama(kInstance)) {
        if (arguments_.num_kinds > 1) plan(*signals_.shares[1], arguments_.second_attention);
      }
      if (arrives_for_warp(lane_index())) mbarrier_arrive(&signals_.planned);
    }
    if (warp_index() < arguments_.num_tokens) embed(warp_index());
    rotate(signals_.first_rotations, arguments_.rope_tables[0]);
    if constexpr (!is_llama(kInstance)) {
      if (arguments_.num_kinds > 1) rotate(*signals_.rotations[1], arguments_.rope_tables[1]);
    }
    if (thread < arguments_.num_tokens) {
      const AttentionArguments& attention = arguments_.attention;
      const auto page_size = static_cast<int>(attention.page_size.divisor());
      const int slot = arguments_.kv_slots[thread];
      signals_.page_rows[thread] =
          static_cast<int64_t>(slot / page_size) * num_kv_heads<kInstance>(arguments_) * page_size +
          slot % page_size;
    }
    sync_fused_consumers();
    mbarrier_wait(&signals_.planned, 0);
  }

  // Publishes the block's share of a token's embedding, which is the residual stream into the first
  // layer.
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
      const auto weights = load_vector<4>(signals_.layers[0].input_layernorm, i);
      float values[4];
      float weighted[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        values[j] = as_float(vector.values[j]);
        if constexpr (!is_llama(kInstance)) values[j] *= arguments_.block.embedding_multiplier;
        weighted[j] = values[j] * weights.values[j];
        squares += values[j] * values[j];
      }
      publish(words(layout().residual_in) + token * hidden_size_ + i * 4,
              make_uint4(__float_as_uint(values[0]), __float_as_uint(values[1]),
                         __float_as_uint(values[2]), __float_as_uint(values[3])));
      const uint2 pairs = make_uint2(pack_pair<Element>(weighted[0], weighted[1]),
                                     pack_pair<Element>(weighted[2], weighted[3]));
      uint32_t* const first = words(layout().weighted_in) + token * kParts * hidden_size_ / 2;
      for (int replica = 0; replica < kReplicas; ++replica) {
        uint32_t* const target =
            first + replica * arguments_.num_tokens * kParts * hidden_size_ / 2;
        publish_features<kTokens>(target, i, pairs);
        if constexpr (kParts > 1) {  // nothing is added
          publish_features<kTokens>(target + hidden_size_ / 2, i, uint2{});
        }
      }
    }
    if constexpr (kParts > 1) {
      publish_embedding_squares(token, {.of_stream = squares}, own_squares());
    } else {
      publish_embedding_squares(token, squares, own_squares());
    }
    const auto block = static_cast<int>(blockIdx.x);
    const FusedProduct& product = arguments_.products[kDown];
    if (block < product.num_claimed(num_blocks)) {  // no item is claimed for embeddings
      publish_embedding_squares(token, Squares{}, claimed_squares_of(block));
    }
  }
  __device__ void publish_embedding_squares(int token, const Squares& squares, int share) const {
    publish_squares<kTokens>(words(layout().squares_in), arguments_.num_tokens, token, squares,
                             share, true);
  }

  // Computes the rotations of the step's tokens in layers with this RoPE table.
  __device__ void rotate(FusedRotations<kTokens, kHeadDim>& rotations,
                         const float* rope_table) const {
    constexpr int kHalf = kHeadDim / 2;
    for (int i = static_cast<int>(threadIdx.x); i < arguments_.num_tokens * kHalf;
         i += kFusedConsumers) {
      rotations.of_token[i / kHalf][i % kHalf] =
          is_llama(kInstance) || rope_table != nullptr
              ? rotation_of(arguments_.positions[i / kHalf], rope_table[i % kHalf],
                            rope_table[kHalf + i % kHalf])
              : make_float2(1.0f, 0.0f);
    }
  }

  // Finds the block's share of attention in layers with this window: its pieces and their pages.
  __device__ void plan(FusedAttentionShare<kTokens>& share, const AttentionArguments& attention) {
    DecodeItems<1, false> items(attention, arguments_.division);
    items.divide();
    DecodePiece piece;
    int count = 0;
    int num_pages = 0;
    for (; items.next(piece); ++count) {
      if constexpr (kTokens > 1) turn_to_token(piece, attention.heads_per_kv_head);
      turn_to_kv_head<kInstance>(arguments_, piece);
      const int begin = first_page(attention, piece);
      const int last_token =
          max(min(piece.tile_end * kDecodeTileTokens, piece.context_length) - 1, 0);
      int end = static_cast<int>(attention.page_size.divide(last_token)) + 1;
      // A sequence's last tile may begin behind what its earlier tokens in the step see.
      if constexpr (kTokens > 1) end = max(end, begin);
      const bool fits = num_pages + end - begin <= kMaxFusedPages;
      const int32_t* const table =
          attention.block_tables + static_cast<int64_t>(piece.sequence) * attention.max_pages;
      for (int page = begin + lane_index(); fits && page < end; page += kWarpSize) {
        share.pages[num_pages + page - begin] = table[page];
      }
      if (lane_index() == 0) {
        share.pieces[count] = piece;
        share.first_pages[count] = fits ? num_pages : kMaxFusedPages;
      }
      if (fits) num_pages += end - begin;
    }
    __syncwarp();
    if (lane_index() == 0) share.num_pieces = count;
    __syncwarp();
  }

  __device__ void attend() {
    // The layer's pointers are there after this wait, which must come before the barrier's next
    // phase can end.
    if ((!is_llama(kInstance) || reads_fp8(kInstance)) && position_.layer > 0) {
      mbarrier_wait(&signals_.words_cleared, (position_.layer - 1) % 2);
    }
    // This warp has read all words of the layer before.
    if (arrives_for_warp(lane_index())) mbarrier_arrive(&signals_.previous_layer_left);
    FusedAttention<kTokens, kHeadDim, kInstance>(arguments_, signals_, position_.layer,
                                                 exchange(position_.layer), input_memory_)
        .run(ring_);
  }

  __device__ void multiply() {
    const FusedProduct& product = arguments_.products[position_.product];
    // A product that ends in the residual stream has one pass, seldom more.
    const bool keeps_inputs = !position_.ends_in_residual() &&
                              (kJoinsParts || product.keeps_inputs(static_cast<int>(gridDim.x)));
    FusedInputs<kTokens, kParts> inputs(shared_address(input_memory_), arguments_.input_stride,
                                        arguments_.num_tokens, input_words(), product.features,
                                        keeps_inputs, num_parts());
    if constexpr (kFinishesOwnPasses) finish_.begin_product(position_);
    if constexpr (kJoinsParts) {
      if (num_parts() > 1) inputs.join([&] { return finish_.exchange_factors(); });
    }
    LanePass pass;
    do {
      pass = passes_.next(signals_);
      if (pass.num_groups == 0) break;
      if constexpr (kFinishesOwnPasses) finish_.begin_pass(pass);
      PassSums sums{};
      accumulate_pass<kInstance>(sums, inputs, pass.num_groups, ring_);
      mbarrier_wait(&signals_.sums_free[place_.stage], place_.parity ^ 1);
      store_sums<kTokens>(signals_.sums[place_.stage][reread_warp_index()], sums);
      __syncwarp();
      if (arrives_for_warp(reread_lane_index())) mbarrier_arrive(&signals_.sums_full[place_.stage]);
      if constexpr (kFinishesOwnPasses) finish_.finish_pass(place_);
      place_.advance(1, kSumBuffers);
    } while (!pass.is_last);
    inputs.wait_for_all();
    if constexpr (kFinishesOwnPasses) finish_.end_product();
  }

  // Of the product's inputs.
  __device__ int num_parts() const { return position_.ends_in_residual() ? 1 : kParts; }
  __device__ const uint32_t* input_words() const {
    const int features = arguments_.products[position_.product].features;
    return words(input_offset()) +
           own_replica<kTokens>() * arguments_.num_tokens * num_parts() * (features / 2);
  }
  __device__ int input_offset() const {
    if (position_.product == kOProj) return layout().attention_out;
    if (position_.product == kDown) return layout().hidden;
    return position_.product == kGateUp ? layout().weighted_mid : layout().weighted_in;
  }

  const FusedDecodeArguments& arguments_;
  Signals& signals_;
  UnitRing ring_;
  unsigned char* input_memory_;
  int hidden_size_;
  FusedPosition position_;
  PassWalk passes_;
  RingPosition place_;                                  // of sums
  FusedEpilogue<kTokens, kHeadDim, kInstance> finish_;  // of token `warp`, if kFinishesOwnPasses
};

template <int kTokens, int kHeadDim, FusedInstance kInstance>
__device__ void fused_decode_block(const FusedDecodeArguments& launched) {
  using Signals = FusedSignals<kTokens, kHeadDim, kInstance>;
  constexpr FusedRegisters kRegisters = fused_registers(kTokens, kHeadDim, kInstance);
  constexpr size_t kArgumentBytes = fused_argument_bytes(kInstance);
  extern __shared__ unsigned char shared_bytes[];
  __shared__ Signals signals;
  // The arguments are copied to shared memory, from where the compiler fetches each again where it
  // is used. In registers they would stay for the whole step and leave fewer for the computation.
  __shared__ alignas(FusedDecodeArguments) unsigned char argument_bytes[kArgumentBytes];
  const auto& arguments = *reinterpret_cast<const FusedDecodeArguments*>(argument_bytes);
  static_assert(sizeof(signals) + sizeof(argument_bytes) <=
                fused_static_bytes(kInstance, kTokens, kHeadDim));
  // The swizzle counts from multiples of 1024 bytes.
  unsigned char* const rings = shared_bytes + (-shared_address(shared_bytes) & 1023u);
  // All lanes have the same warp index, which the shuffle tells the compiler.
  const int warp = __shfl_sync(kFullWarp, warp_index(), 0);
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < kFusedWarps * kMaxFusedStages) {
    mbarrier_init(&signals.full[thread], 1);
    mbarrier_init(&signals.empty[thread], warp_arrivals());
    if (thread < kPassSlots) {
      mbarrier_init(&signals.pass_told[thread], warp_arrivals(kFusedWarps));
      mbarrier_init(&signals.pass_known[thread],
                    (kFusedWarps + (has_epilogue_warp(kTokens) ? 1 : 0)) * warp_arrivals());
    }
    if (thread < kSumBuffers) {
      mbarrier_init(&signals.sums_full[thread], kFusedWarps * warp_arrivals());
      mbarrier_init(&signals.sums_free[thread],
                    (has_epilogue_warp(kTokens) ? 1 : kFusedWarps) * warp_arrivals());
    }
    if (thread == 0) {
      mbarrier_init(&signals.planned, warp_arrivals());
      mbarrier_init(&signals.previous_layer_left, layer_leavers(kTokens) * warp_arrivals());
      mbarrier_init(&signals.words_cleared, warp_arrivals());
      if constexpr (joins_parts(kTokens, kInstance)) {
        mbarrier_init(&signals.factors_known, kFusedWarps * warp_arrivals());
      }
    }
    fence_barrier_init();
  }
  static_assert(kArgumentBytes % sizeof(uint32_t) == 0 &&
                kArgumentBytes / sizeof(uint32_t) <= kFusedThreads);
  if (thread < static_cast<int>(kArgumentBytes / sizeof(uint32_t))) {
    reinterpret_cast<uint32_t*>(argument_bytes)[thread] =
        reinterpret_cast<const uint32_t*>(&launched)[thread];
  }
  if (thread == 0) {
    signals.layers[0] = launched.layers[0];
    if constexpr (!is_llama(kInstance)) place_kinds(signals, launched, rings);
  }
  __syncthreads();
  // Up to here, only what is the same in all steps has been read.
  wait_for_previous_results();
  if (warp >= kFusedWarps) {
    give_up_registers<kRegisters.other>();
    if (warp == kFillingWarp && lane_index() < kFusedWarps) fill_rings(arguments, signals, rings);
    if (warp == kHelpingWarp) help_consumers(arguments, signals);
    if constexpr (has_epilogue_warp(kTokens)) {
      if (warp == kEpilogueWarp) run_epilogues(arguments, signals);
    }
    return;
  }
  take_registers<kRegisters.compute>();
  const int first_stage = arguments.rings.first_stage(warp);
  // What a shuffle gives, the compiler does not compute anew.
  const auto opaque = [](uint32_t address) { return __shfl_sync(kFullWarp, address, 0); };
  const UnitRing ring{.full = opaque(shared_address(&signals.full[first_stage])),
                      .empty = opaque(shared_address(&signals.empty[first_stage])),
                      .data = opaque(shared_address(rings) + first_stage * kUnitBytes),
                      .zero = static_cast<uint32_t>(arguments.rings.stages) >> 16,
                      .num_stages = arguments.rings.of_warp(warp),
                      .position = {}};
  FusedStep<kTokens, kHeadDim, kInstance>(arguments, signals, ring,
                                          rings + arguments.rings.num_stages() * kUnitBytes)
      .run();
}

template <int kTokens, int kHeadDim, FusedInstance kInstance>
__global__ void __launch_bounds__(kFusedThreads, 1)
    fused_decode_kernel(const __grid_constant__ FusedDecodeArguments arguments) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  fused_decode_block<kTokens, kHeadDim, kInstance>(arguments);
#else
  __trap();  // the plan declines such a GPU
#endif
}

// Blocks wait for each other, so all of them must run at once, each on a multiprocessor of its own.
// They do once the blocks of earlier kernels have left, which wait for nothing that this kernel
// does. A cooperative launch would begin only then, 1.5 us later.
template <int kTokens, int kHeadDim, FusedInstance kInstance>
void launch(const FusedDecodeArguments& arguments, const FusedDecodeLaunch& shape,
            cudaStream_t stream) {
  const auto kernel = fused_decode_kernel<kTokens, kHeadDim, kInstance>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  shape.shared_bytes));
  const LaunchShape blocks{.blocks = dim3(static_cast<unsigned>(shape.num_blocks)),
                           .threads = kFusedThreads,
                           .shared_bytes = static_cast<size_t>(shape.shared_bytes)};
  attach_clocks();
  launch_dependent(kernel, blocks, stream, arguments);
}

template <int kTokens, int kHeadDim>
void launch_for_block(const FusedDecodeArguments& arguments, const FusedDecodeLaunch& shape,
                      cudaStream_t stream) {
  const FusedInstance instance =
      fused_instance(arguments.block, arguments.kv_scales != nullptr, kHeadDim);
  const auto launch_if = [&]<FusedInstance kInstance>() {
    if constexpr (fused_instance_is_built(kInstance, kHeadDim)) {
      if (instance == kInstance) launch<kTokens, kHeadDim, kInstance>(arguments, shape, stream);
    }
  };
  launch_if.template operator()<FusedInstance::kLlama>();
  launch_if.template operator()<FusedInstance::kLlamaFp8>();
  launch_if.template operator()<FusedInstance::kPreNormFp8>();
  launch_if.template operator()<FusedInstance::kPreNorm>();
  launch_if.template operator()<FusedInstance::kAnyBlock>();
  launch_if.template operator()<FusedInstance::kAnyBlockFp8>();
}

template <int kHeadDim>
void launch_for_tokens(const FusedDecodeArguments& arguments, const FusedDecodeLaunch& shape,
                       cudaStream_t stream) {
  if (arguments.num_tokens == 1) {
    launch_for_block<1, kHeadDim>(arguments, shape, stream);
  } else {
    launch_for_block<kFusedMaxTokens, kHeadDim>(arguments, shape, stream);
  }
}

}  // namespace

void launch_fused_decode(const FusedDecodeArguments& arguments, const FusedDecodeLaunch& launch,
                         cudaStream_t stream) {
  if (launch.head_dim == 64) return launch_for_tokens<64>(arguments, launch, stream);
  if (launch.head_dim == 96) return launch_for_tokens<96>(arguments, launch, stream);
  if (launch.head_dim == 128) return launch_for_tokens<128>(arguments, launch, stream);
  launch_for_tokens<256>(arguments, launch, stream);
}

}  // namespace tessera
