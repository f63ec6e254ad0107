#include <algorithm>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/linear/gated/consumer.cuh"
#include "kernels/cuda/linear/gated/kernel.h"
#include "kernels/cuda/linear/gated/producer.cuh"
#include "kernels/cuda/primitives/register_budget.cuh"

namespace tessera {
namespace {

// Two warpgroups multiply; a thread of the third copies.
constexpr int kThreads = (kGatedWarpgroups + 1) * kWarpgroupSize;

template <typename Config>
__global__ void TESSERA_CLUSTER_OF(kGatedPairBlocks) __launch_bounds__(kThreads, 1)
    linear_gated_sm90_kernel(const __grid_constant__ GatedArguments arguments,
                             const __grid_constant__ GatedMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<GatedShared<Config>*>(shared_bytes);
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&maps.x);
    prefetch_tensor_map(&maps.x_small);
    prefetch_tensor_map(&maps.weight);
    shared.init_barriers();
  }
  __syncwarp();
  // Each block counts at the other's barriers.
  cluster_arrive();
  cluster_wait();
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroupSize;
  if (warpgroup == kGatedWarpgroups) {
    give_up_registers<kGatedProducerRegisters>();
    if (threadIdx.x % kWarpgroupSize == 0) GatedProducer<Config>(shared, maps, arguments).run();
    __syncwarp();
  } else {
    take_registers<kGatedConsumerRegisters>();
    wait_for_previous_results();
    GatedConsumer<Config>(shared, arguments, warpgroup).run();
  }
  // Until the other block has told the last of this one's stages, this one's barriers must stay.
  cluster_arrive();
  cluster_wait();
#else
  __trap();  // takes_gated() chooses this kernel only where it was built
#endif
}

template <typename Config>
void launch(const Tensor& out, const Tensor& x, const Tensor& weight, Activation activation,
            const GatedPlan& plan, int num_multiprocessors, cudaStream_t stream) {
  const int64_t num_tokens = x.dim(0);
  const int64_t intermediate_size = out.dim(1);
  const GatedArguments arguments{
      .out = out.data,
      .intermediate_size = intermediate_size,
      .num_tokens = static_cast<int>(num_tokens),
      .num_steps = static_cast<int>(ceil_divide<int64_t>(x.dim(1), kPanelColumns)),
      .pair_shares = plan.pair_shares,
      .activation = activation,
      .token_pairs = static_cast<int>(ceil_divide(num_tokens, plan.pair_tokens())),
      .feature_pairs = static_cast<int>(ceil_divide(intermediate_size, plan.pair_features()))};
  // Weights that are read once come faster from memory in larger pieces (84 instead of 89 us for 65
  // tokens of an 8B model on an H100); those that other pairs read too come from the L2 cache.
  const L2Fetch fetch = arguments.token_pairs == 1 ? L2Fetch::k256 : L2Fetch::k128;
  const int brought_tokens =
      plan.pair_shares == PairShares::kWeights ? kGatedTileTokens : kGatedTileTokens / 2;
  const GatedMaps maps{.x = make_matrix_tensor_map(x, brought_tokens),
                       .x_small = make_matrix_tensor_map(x, kGatedSmallBox),
                       .weight = make_matrix_tensor_map(weight, Config::kFeatures, fetch)};
  const int64_t num_pairs = int64_t{arguments.token_pairs} * arguments.feature_pairs;
  const int64_t num_blocks =
      kGatedPairBlocks * std::min<int64_t>(num_pairs, num_multiprocessors / kGatedPairBlocks);
  constexpr int kSharedBytes = sizeof(GatedShared<Config>);
  static_assert(kSharedBytes <= 227 * 1024, "what a block may have");
  const auto kernel = linear_gated_sm90_kernel<Config>;
  CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  launch_dependent(kernel,
                   {.blocks = dim3(static_cast<unsigned>(num_blocks)),
                    .threads = kThreads,
                    .shared_bytes = kSharedBytes},
                   stream, arguments, maps);
}

}  // namespace

void launch_linear_gated_sm90(const Tensor& out, const Tensor& x, const Tensor& weight,
                              Activation activation, const GatedPlan& plan, int num_multiprocessors,
                              cudaStream_t stream) {
  CHECK(out.dim(1) % 8 == 0, "linear_gated: ", out.dim(1), " features, not a multiple of 8");
  dispatch_element(x.dtype, [&]<typename Element>() {
    const auto launch_tiles = [&]<int kFeatures>() {
      launch<GatedConfig<Element, kFeatures>>(out, x, weight, activation, plan, num_multiprocessors,
                                              stream);
    };
    switch (plan.tile_features) {
      case 128:
        return launch_tiles.template operator()<128>();
      case 112:
        return launch_tiles.template operator()<112>();
      case 96:
        return launch_tiles.template operator()<96>();
      default:
        throw Error(concat("linear_gated: no tiles of ", plan.tile_features, " features"));
    }
  });
}

}  // namespace tessera
