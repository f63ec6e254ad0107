#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/linear/skinny/consumer.cuh"
#include "kernels/cuda/linear/skinny/kernel.h"
#include "kernels/cuda/linear/skinny/producer.cuh"
#include "kernels/cuda/linear/skinny/scales.cuh"
#include "kernels/cuda/primitives/clock.cuh"
#include "kernels/cuda/primitives/cluster.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// A warpgroup multiplies; one warp each copies weights, copies tokens and computes scales.
constexpr int kThreads = kWarpgroupSize + 3 * kWarpSize;

struct SkinnyMaps {
  CUtensorMap weight;
  CUtensorMap x;
};

// The warps that set up barriers, and the warp that computes scales, announce that the barriers are
// there and go on. The warps that multiply wait until all have announced it, those of all blocks
// that share their tiles.
template <typename Config>
__device__ void announce_barriers() {
  if constexpr (Config::kSplit > 1) {
    cluster_arrive();
  } else {
    asm volatile("bar.arrive 2, %0;" ::"n"(kThreads) : "memory");
  }
}
template <typename Config>
__device__ void wait_for_barriers() {
  if constexpr (Config::kSplit > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    asm volatile("bar.sync 2, %0;" ::"n"(kThreads) : "memory");
  }
}

template <typename Config, typename Out>
__global__ void TESSERA_CLUSTER_OF(Config::kSplit) __launch_bounds__(kThreads, 1)
    linear_skinny_sm90_kernel(const __grid_constant__ SkinnyArguments arguments,
                              const __grid_constant__ SkinnyMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<SkinnyShared<Config>*>(shared_bytes);
  const SkinnyShare<Config> share(arguments);
  // All lanes have the same warp index, which the shuffle tells the compiler.
  const int warp = __shfl_sync(kFullWarp, warp_index(), 0);
  constexpr ClockedKernel kClocked = Config::kRotates ? ClockedKernel::kQkv
                                     : Config::kGated ? ClockedKernel::kGateUp
                                                      : ClockedKernel::kLinear;
  if (warp < kConsumerWarps) {
    PhaseClock clock(kClocked, threadIdx.x == 0, 3);
    wait_for_barriers<Config>();
    SkinnyConsumer<Config, Out> consumer{shared, arguments, share};
    consumer.prepare();
    clock.end_phase(ClockPhase::kSetUp, arguments.in_features);
    wait_for_previous_results();
    clock.end_phase(ClockPhase::kWait, arguments.in_features);
    consumer.run();
    clock.end_phase(ClockPhase::kMultiply, arguments.in_features);
  } else if (warp == kConsumerWarps) {
    // Nobody writes weights while a model runs, so these copies need not wait for the kernel
    // before. The next kernel may start when all of them are under way: earlier, its copies would
    // only delay those of this kernel.
    if (lane_index() == 0) {
      prefetch_tensor_map(&maps.weight);
      shared.weight_barriers.init();
    }
    __syncwarp();
    announce_barriers<Config>();
    if (lane_index() == 0) {
      PhaseClock clock(kClocked, true, 1);
      if (has_whole_panels(arguments.in_features)) {
        copy_weights<Config, true>(shared, maps.weight, arguments, share);
      } else {
        copy_weights<Config, false>(shared, maps.weight, arguments, share);
      }
      clock.end_phase(ClockPhase::kCopyWeights, arguments.in_features);
      launch_next_kernel();
    }
  } else if (warp == kConsumerWarps + 1) {
    if (lane_index() == 0) {
      prefetch_tensor_map(&maps.x);
      shared.token_barriers.init();
      if constexpr (Config::kSplit > 1) {
        // Counts what the warps with tokens get from the same warps of the other blocks.
        mbarrier_init(&shared.all_received, 1);
        fence_barrier_init();
        const int num_warps = (arguments.num_tokens + 15) / 16;
        mbarrier_expect_bytes(&shared.all_received,
                              sizeof(shared.received) / kConsumerWarps * num_warps);
      }
    }
    __syncwarp();
    announce_barriers<Config>();
    wait_for_previous_results();
    if (lane_index() == 0) copy_tokens<Config>(shared, maps.x, arguments, share);
  } else {
    announce_barriers<Config>();
    if (arguments.squares == nullptr) return;
    wait_for_previous_results();
    compute_scales(shared.scales, arguments);
  }
#else
  __trap();  // plan_linear() chooses this kernel only where it was built
#endif
}

SkinnyRope rope_arguments(const SkinnyRopeTarget& rope, int64_t out_features) {
  const int64_t head_dim = rope.pages.head_dim();
  const int64_t kv_rows = rope.pages.num_kv_heads() * head_dim;
  CHECK(head_dim == 64 || head_dim == 128, "linear_skinny: no rotation of heads of ", head_dim);
  return {.keys = rope.pages.keys.data,
          .values = rope.pages.values.data,
          .positions = rope.positions.as<int32_t>(),
          .kv_slots = rope.kv_slots.as<int32_t>(),
          .rope_table = rope.rope_table.as<float>(),
          .bias = rope.bias.empty() ? nullptr : rope.bias.as<float>(),
          .query_rows = static_cast<int>(out_features - 2 * kv_rows),
          .kv_rows = static_cast<int>(kv_rows),
          .head_dim = static_cast<int>(head_dim),
          .page_size = static_cast<int>(rope.pages.page_size())};
}

template <typename Config>
void launch(const SkinnyProduct& product, int num_multiprocessors, cudaStream_t stream) {
  const auto& [out, x, weight, accumulate, multiplier, is_gated, activation, x_squares, epsilon,
               norm, rope] = product;
  CHECK(multiplier == 1.0f || (accumulate && x_squares.empty()), "linear_skinny: a multiplier of ",
        multiplier, " where nothing is added to");
  const int64_t out_features = weight.dim(0) / Config::kParts;
  const auto num_tiles = static_cast<int>(ceil_divide<int64_t>(out_features, Config::kOutRows));
  const auto num_steps = static_cast<int>(ceil_divide<int64_t>(weight.dim(1), kStepFeatures));
  const int num_clusters = std::min(num_tiles, num_multiprocessors / Config::kSplit);
  constexpr int kFinishing = Config::kSplit > 1 ? Config::kFinishers : 1;  // blocks of a tile
  CHECK(Config::kSplit == 1 || (num_clusters == num_tiles && num_steps >= Config::kSplit),
        "linear_skinny: ", num_tiles, " tiles of ", num_steps, " steps cannot be split");
  CHECK(norm.values.empty() || (out_features % Config::kOutRows == 0 &&
                                Config::kOutRows / kFinishing % kSquaresFeatures == 0),
        "linear_skinny: no norm of ", out_features, " features in tiles of ", Config::kOutRows);
  const auto num_tokens = static_cast<int>(x.dim(0));
  const int token_panel_rows = checked_round_up(num_tokens, 8, "token rows");
  const int token_stage_bytes =
      token_panel_rows * kStepFeatures * static_cast<int>(sizeof(typename Config::Element));
  SkinnyArguments arguments{
      .out = out.data,
      .out_features = out_features,
      .num_tokens = num_tokens,
      .num_tiles = num_tiles,
      .num_steps = num_steps,
      .token_panel_rows = token_panel_rows,
      .num_token_stages = std::min(kTokenRingBytes / token_stage_bytes, kMaxTokenStages),
      .accumulate = accumulate,
      .multiplier = multiplier,
      .squares = x_squares.empty() ? nullptr : x_squares.as<float>(),
      .num_squares = x_squares.empty() ? 0 : static_cast<int>(x_squares.dim(1)),
      .in_features = static_cast<int>(x.dim(1)),
      .epsilon = epsilon,
      .norm = {.values = norm.values.data,
               .squares = norm.values.empty() ? nullptr : norm.squares.as<float>(),
               .weight = norm.values.empty() ? nullptr : norm.weight.as<float>()},
      .rope = {}};
  if constexpr (Config::kRotates) arguments.rope = rope_arguments(rope, out_features);
  // The map of x has no more rows than x: the copy engine takes longer to write zeros than to
  // fetch.
  const SkinnyMaps maps{.weight = has_whole_panels(weight.dim(1))
                                      ? make_weight_tensor_map(weight, kBoxRows, kStepFeatures)
                                      : make_matrix_tensor_map(weight, kBoxRows),
                        .x = make_matrix_tensor_map(x, num_tokens)};
  constexpr int kSharedBytes = sizeof(SkinnyShared<Config>);
  static_assert(kSharedBytes <= 227 * 1024, "what a block may have");
  const auto launch_for = [&]<typename Out>() {
    const auto kernel = linear_skinny_sm90_kernel<Config, Out>;
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    attach_clocks();
    launch_dependent(kernel,
                     {.blocks = dim3(static_cast<unsigned>(num_clusters * Config::kSplit)),
                      .threads = kThreads,
                      .shared_bytes = kSharedBytes},
                     stream, arguments, maps);
  };
  if constexpr (!Config::kGated && !Config::kRotates) {
    if (out.dtype == DType::kFloat32) return launch_for.template operator()<float>();
  }
  launch_for.template operator()<typename Config::Element>();
}

// Launches the kernel for `plan` if kPlans has it, else returns false. So the plans that
// linear/plan.h lists are those that are built.
template <typename Element, const auto& kPlans, bool kGated, bool kRotates,
          Activation kActivation = Activation::kSilu>
bool launch_plan(const SkinnyProduct& product, const SkinnyPlan& plan, int num_multiprocessors,
                 cudaStream_t stream) {
  const auto launch_if_equal = [&]<size_t kIndex>() {
    constexpr SkinnyPlan kPlan = kPlans[kIndex];
    if (plan != kPlan) return false;
    launch<SkinnyConfig<Element, kPlan.tile_rows, kPlan.split, kGated, kPlan.tiles_at_once,
                        kRotates, kActivation>>(product, num_multiprocessors, stream);
    return true;
  };
  return [&]<size_t... kIndices>(std::index_sequence<kIndices...>) {
    return (launch_if_equal.template operator()<kIndices>() || ...);
  }
  (std::make_index_sequence<std::size(kPlans)>());
}

}  // namespace

void launch_linear_skinny_sm90(const SkinnyProduct& product, const SkinnyPlan& plan,
                               int num_multiprocessors, cudaStream_t stream) {
  CHECK(product.x.dim(0) <= kSkinnyMaxTokens, "linear_skinny: ", product.x.dim(0),
        " tokens, at most ", kSkinnyMaxTokens);
  const bool is_built = dispatch_element(product.x.dtype, [&]<typename Element>() {
    if (!product.rope.positions.empty()) {
      return launch_plan<Element, kRopeSkinnyPlans, false, true>(product, plan, num_multiprocessors,
                                                                 stream);
    }
    if (product.is_gated) {
      const auto launch_gated = [&]<Activation kActivation>() {
        return launch_plan<Element, kGatedSkinnyPlans, true, false, kActivation>(
            product, plan, num_multiprocessors, stream);
      };
      return product.activation == Activation::kSilu
                 ? launch_gated.template operator()<Activation::kSilu>()
                 : launch_gated.template operator()<Activation::kGeluTanh>();
    }
    return launch_plan<Element, kSkinnyPlans, false, false>(product, plan, num_multiprocessors,
                                                            stream);
  });
  CHECK(is_built, "linear_skinny: no tiles of ", plan.tile_rows, " rows shared by ", plan.split,
        " blocks, ", plan.tiles_at_once, " at once; see linear/plan.h");
}

}  // namespace tessera
