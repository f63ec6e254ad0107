#include <algorithm>

#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/dependent_launch.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/linear_skinny_consumer.cuh"
#include "kernels/cuda/linear_skinny_producer.cuh"
#include "kernels/cuda/linear_skinny_sm90.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kThreads = kWarpgroupSize + 2 * kWarpSize;

struct SkinnyMaps {
  CUtensorMap weight;
  CUtensorMap x;
};

// Compiled for older GPUs, where it never runs, the kernel must not ask for clusters.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define TESSERA_CLUSTER_OF(size) __cluster_dims__(size)
#else
#define TESSERA_CLUSTER_OF(size)
#endif

template <typename Config, typename Out>
__global__ void TESSERA_CLUSTER_OF(Config::kSplit) __launch_bounds__(kThreads, 1)
    linear_skinny_sm90_kernel(const __grid_constant__ SkinnyArguments arguments,
                              const __grid_constant__ SkinnyMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<SkinnyShared<Config>*>(shared_bytes);
  if (threadIdx.x == 0) {
    shared.weight_barriers.init();
    shared.token_barriers.init();
    fence_barrier_init();
    prefetch_tensor_map(&maps.weight);
    prefetch_tensor_map(&maps.x);
  }
  __syncthreads();
  const SkinnyShare<Config> share(arguments);
  // The same in all lanes, which the shuffle tells the compiler.
  const int warp = __shfl_sync(kFullWarp, warp_index(), 0);
  if (warp < kConsumerWarps) {
    wait_for_previous_results();
    SkinnyConsumer<Config, Out>{shared, arguments, share}.run();
  } else if (warp == kConsumerWarps) {
    // Nobody writes weights while a model runs, so they need not wait for the kernel before. The
    // kernel after this one may come when all is on its way: earlier, its copies would only delay
    // those of this one.
    if (lane_index() == 0) {
      copy_weights<Config>(shared, maps.weight, arguments, share);
      launch_next_kernel();
    }
  } else {
    wait_for_previous_results();
    if (lane_index() == 0) copy_tokens<Config>(shared, maps.x, arguments, share);
  }
#else
  __trap();  // plan_linear() chooses this kernel only where it was built
#endif
}

template <typename Config>
void launch(const Tensor& out, const Tensor& x, const Tensor& weight, bool accumulate,
            int num_multiprocessors, cudaStream_t stream) {
  const auto num_tiles = static_cast<int>(ceil_divide<int64_t>(weight.dim(0), Config::kRows));
  const auto num_steps =
      static_cast<int>(ceil_divide<int64_t>(weight.dim(1), Config::kStepFeatures));
  const int num_clusters = std::min(num_tiles, num_multiprocessors / Config::kSplit);
  CHECK(Config::kSplit == 1 || (num_clusters == num_tiles && num_steps >= Config::kSplit),
        "linear_skinny: ", num_tiles, " tiles of ", num_steps, " steps cannot be split");
  const SkinnyArguments arguments{.out = out.data,
                                  .out_features = weight.dim(0),
                                  .num_tokens = static_cast<int>(x.dim(0)),
                                  .num_tiles = num_tiles,
                                  .num_steps = num_steps,
                                  .accumulate = accumulate};
  // No more rows of x than there are: the copy engine takes longer to write zeros than to fetch.
  const SkinnyMaps maps{.weight = make_matrix_tensor_map(weight, Config::kRows),
                        .x = make_matrix_tensor_map(x, arguments.num_tokens)};
  constexpr int kSharedBytes = sizeof(SkinnyShared<Config>);
  static_assert(kSharedBytes <= 227 * 1024, "what a block may have");
  const auto launch_for = [&]<typename Out>() {
    const auto kernel = linear_skinny_sm90_kernel<Config, Out>;
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    launch_dependent(kernel,
                     {.blocks = dim3(static_cast<unsigned>(num_clusters * Config::kSplit)),
                      .threads = kThreads,
                      .shared_bytes = kSharedBytes},
                     stream, arguments, maps);
  };
  if (out.dtype == DType::kFloat32) {
    launch_for.template operator()<float>();
  } else {
    launch_for.template operator()<typename Config::Element>();
  }
}

}  // namespace

void launch_linear_skinny_sm90(const Tensor& out, const Tensor& x, const Tensor& weight,
                               bool accumulate, const SkinnyPlan& plan, int num_multiprocessors,
                               cudaStream_t stream) {
  CHECK(x.dim(0) <= kSkinnyMaxTokens, "linear_skinny: ", x.dim(0), " tokens, at most ",
        kSkinnyMaxTokens);
  dispatch_element(x.dtype, [&]<typename Element>() {
    const auto run = [&]<int kRows, int kSplit>() {
      launch<SkinnyConfig<Element, kRows, kSplit>>(out, x, weight, accumulate, num_multiprocessors,
                                                   stream);
    };
    if (plan == SkinnyPlan{64, 1}) return run.template operator()<64, 1>();
    if (plan == SkinnyPlan{64, 2}) return run.template operator()<64, 2>();
    if (plan == SkinnyPlan{96, 2}) return run.template operator()<96, 2>();
    if (plan == SkinnyPlan{128, 1}) return run.template operator()<128, 1>();
    throw Error(concat("linear_skinny: no tiles of ", plan.tile_rows, " rows shared by ",
                       plan.split, " blocks; see kSkinnyPlans"));
  });
}

}  // namespace tessera
