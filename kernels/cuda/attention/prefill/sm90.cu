#include <algorithm>
#include <numeric>

#include "kernels/cuda/attention/prefill/consumer.cuh"
#include "kernels/cuda/attention/prefill/producer.cuh"
#include "kernels/cuda/attention/prefill/sm90.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/register_budget.cuh"

namespace tessera {
namespace {

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    attention_prefill_sm90_kernel(const __grid_constant__ AttentionArguments arguments,
                                  const __grid_constant__ PrefillSchedule schedule,
                                  const __grid_constant__ PrefillMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<PrefillShared<Config>*>(shared_bytes);
  if (threadIdx.x == 0) {
    shared.init_barriers();
    prefetch_tensor_map(&maps.query);
    prefetch_tensor_map(&maps.keys);
    prefetch_tensor_map(&maps.values);
  }
  __syncthreads();

  // All lanes have the same warp index, which the shuffle tells the compiler.
  const int warp = __shfl_sync(kFullWarp, warp_index(), 0);
  if (warp < 4) {
    give_up_registers<Config::kProducerRegisters>();
    if (warp == 0) PrefillProducer<Config>{shared, arguments, schedule, maps}.run();
  } else {
    take_registers<Config::kConsumerRegisters>();
    PrefillConsumer<Config>{shared, arguments, maps.box_tokens, {warp / 4 - 1}}.run();
  }
#else
  __trap();  // plan_prefill_attention() chooses this kernel only where it was built
#endif
}

template <typename Config>
void launch(const AttentionArguments& arguments, const AttentionParams& params, int32_t* schedule,
            int num_multiprocessors, PrefillStart start, cudaStream_t stream) {
  const AttentionBatch& batch = params.batch;
  const int box_tokens = std::gcd(static_cast<int>(params.pages.page_size()), Config::kTileKeys);
  const PrefillMaps maps{.query = make_query_tensor_map(params.query, Config::kTileQueries),
                         .keys = make_page_tensor_map(params.pages.keys, box_tokens),
                         .values = make_page_tensor_map(params.pages.values, box_tokens),
                         .box_tokens = box_tokens};
  const int64_t num_sequences = batch.num_sequences - batch.num_decodes;
  const int64_t kv_head_bytes = 2 * static_cast<int64_t>(sizeof(typename Config::Element)) *
                                Config::kHeadDim * batch.max_context_length * num_sequences;
  const int64_t section_kv_heads = std::clamp<int64_t>(
      kSectionBytes / std::max<int64_t>(1, kv_head_bytes), 1, arguments.num_kv_heads);
  PrefillSchedule tiles{
      .num_sequences = static_cast<int>(num_sequences),
      .num_query_tiles =
          static_cast<int>(ceil_divide<int64_t>(batch.max_query_length, Config::kTileQueries)),
      .section_heads = static_cast<int>(section_kv_heads) * arguments.heads_per_kv_head,
      .next_tile = schedule};
  const int num_tiles = tiles.num_query_tiles * tiles.num_sequences * arguments.num_heads;
  if (num_tiles == 0) return;
  const int num_blocks = std::min(num_multiprocessors, num_tiles);
  if (start != PrefillStart::kBesideDecodes) tiles.num_dealt = num_blocks;

  constexpr int kSharedBytes = sizeof(PrefillShared<Config>);
  static_assert(kSharedBytes <= 227 * 1024, "what a block may have");
  const auto kernel = attention_prefill_sm90_kernel<Config>;
  CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  const LaunchShape shape = {.blocks = dim3(static_cast<unsigned>(num_blocks)),
                             .threads = Config::kThreads,
                             .shared_bytes = kSharedBytes,
                             .begins_early = start != PrefillStart::kAfterPrevious};
  launch_dependent(kernel, shape, stream, arguments, tiles, maps);
}

}  // namespace

void launch_attention_prefill_sm90(const Tensor& out, const AttentionParams& params,
                                   int32_t* schedule, int num_multiprocessors, PrefillStart start,
                                   cudaStream_t stream) {
  const AttentionArguments arguments = make_attention_arguments(out, params);
  dispatch_element(out.dtype, [&]<typename Element>() {
    const auto launch_for = [&]<int kHeadDim>() {
      const auto run = params.softcap > 0.0f ? launch<PrefillConfig<Element, kHeadDim, true>>
                                             : launch<PrefillConfig<Element, kHeadDim, false>>;
      run(arguments, params, schedule, num_multiprocessors, start, stream);
    };
    switch (params.pages.head_dim()) {
      case 64:
        return launch_for.template operator()<64>();
      case 96:
        return launch_for.template operator()<96>();
      case 128:
        return launch_for.template operator()<128>();
      case 256:
        return launch_for.template operator()<256>();
      default:
        throw Error(concat("head_dim ", params.pages.head_dim(),
                           " has no Hopper prefill kernel; supported: 64, 96, 128, 256"));
    }
  });
}

}  // namespace tessera
