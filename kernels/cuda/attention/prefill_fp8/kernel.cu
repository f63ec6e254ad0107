#include <algorithm>

#include "kernels/cuda/attention/prefill/producer.cuh"
#include "kernels/cuda/attention/prefill_fp8/arrange.h"
#include "kernels/cuda/attention/prefill_fp8/consumer.cuh"
#include "kernels/cuda/attention/prefill_fp8/kernel.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/primitives/register_budget.cuh"

namespace tessera {
namespace {

template <typename Config>
struct Fp8PrefillShared {
  PrefillShared<Config> copied;
  Fp8QueryRows rounded[Config::kWarpgroups];
};

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    attention_prefill_fp8_kernel(const __grid_constant__ AttentionArguments arguments,
                                 const __grid_constant__ PrefillSchedule schedule,
                                 const __grid_constant__ PrefillMaps maps, const float* key_scales,
                                 const float* value_scales) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& [copied, rounded] = *reinterpret_cast<Fp8PrefillShared<Config>*>(shared_bytes);
  constexpr int kOnesWords = kFp8SumRows * kFp8TileKeys / 4;
  for (int i = threadIdx.x; i < Config::kStages * kOnesWords; i += Config::kThreads) {
    constexpr uint32_t kFourOnes = 0x38383838u;
    auto* const behind_values = copied.values[i / kOnesWords] + Config::kTileElements;
    reinterpret_cast<uint32_t*>(behind_values)[i % kOnesWords] = kFourOnes;
  }
  fence_async_proxy();  // tensor cores read the ones
  if (threadIdx.x == 0) {
    copied.init_barriers();
    prefetch_tensor_map(&maps.query);
    prefetch_tensor_map(&maps.keys);
    prefetch_tensor_map(&maps.values);
  }
  __syncthreads();

  // All lanes have the same warp index, which the shuffle tells the compiler.
  const int warp = __shfl_sync(kFullWarp, warp_index(), 0);
  if (warp < 4) {
    give_up_registers<Config::kProducerRegisters>();
    if (warp == 0) PrefillProducer<Config>{copied, arguments, schedule, maps}.run();
  } else {
    take_registers<Config::kConsumerRegisters>();
    const int warpgroup = warp / 4 - 1;
    Fp8PrefillConsumer<Config>{copied,     rounded[warpgroup], arguments,
                               key_scales, value_scales,       warpgroup}
        .run();
  }
#else
  __trap();  // chosen only where it was built
#endif
}

template <typename OutElement>
class Fp8Prefill {
 public:
  Fp8Prefill(const Tensor& out, const AttentionParams& params, const Tensor& scratch,
             int32_t* schedule, int num_multiprocessors, cudaStream_t stream, int64_t most_bytes)
      : out_(out),
        params_(params),
        scratch_(scratch),
        schedule_(schedule),
        num_multiprocessors_(num_multiprocessors),
        stream_(stream) {
    const AttentionBatch& batch = params.batch;
    sizes_ = fp8_prefill_scratch({.max_sequences = batch.num_sequences - batch.num_decodes,
                                  .max_context_length = batch.max_context_length,
                                  .num_kv_heads = params.pages.num_kv_heads()},
                                 most_bytes);
    CHECK(scratch.size_bytes() >= static_cast<size_t>(sizes_.total()),
          "FP8 prefill attention: the scratch has ", scratch.size_bytes(), " bytes, needs ",
          sizes_.total());
  }

  // As many sequences at a time as the scratch holds.
  void run() const {
    const AttentionBatch& batch = params_.batch;
    const int64_t at_a_time =
        std::max<int64_t>(1, sizes_.tiles / arranged_sequence_bytes(params_.pages.num_kv_heads(),
                                                                    batch.max_context_length));
    for (int64_t begin = batch.num_decodes; begin < batch.num_sequences; begin += at_a_time) {
      const int64_t end = std::min(begin + at_a_time, batch.num_sequences);
      AttentionParams part = params_;
      part.batch.query_starts = batch.query_starts.slice(begin, end + 1);
      part.batch.context_lengths = batch.context_lengths.slice(begin, end);
      part.batch.block_tables = batch.block_tables.slice(begin, end);
      part.batch.num_sequences = end - begin;
      part.batch.num_decodes = 0;
      run_sequences(part);
    }
  }

 private:
  using Config = Fp8PrefillConfig<OutElement>;

  Fp8Arrangement arrangement(int64_t tiles_per_sequence) const {
    auto* next = static_cast<uint8_t*>(scratch_.data);
    const auto take = [&](int64_t bytes) {
      uint8_t* const taken = next;
      next += bytes;
      return taken;
    };
    Fp8Arrangement arranged{};
    arranged.keys = take(sizes_.tiles);
    arranged.values = take(sizes_.tiles);
    arranged.tables = reinterpret_cast<int32_t*>(take(sizes_.tables));
    arranged.tiles_per_sequence = static_cast<int>(tiles_per_sequence);
    return arranged;
  }

  // Rows of bytes as rows of 16-bit elements, half as many.
  Tensor pairs(uint8_t* data, const Shape& shape) const {
    return {data, DType::kBFloat16, scratch_.device, shape};
  }

  void run_sequences(const AttentionParams& params) const {
    const AttentionBatch& batch = params.batch;
    AttentionArguments arguments = make_attention_arguments(out_, params);
    const Fp8Arrangement arranged = arrangement(
        std::max<int64_t>(1, ceil_divide<int64_t>(batch.max_context_length, kFp8TileKeys)));
    launch_arrange_fp8(arguments, static_cast<int>(batch.num_sequences), arranged, stream_);
    arguments.block_tables = arranged.tables;
    arguments.max_pages = arranged.tiles_per_sequence;
    arguments.page_size = FastDivisor(kFp8TileKeys);

    const int64_t num_kv_heads = params.pages.num_kv_heads();
    const Shape tiles_shape{batch.num_sequences * arranged.tiles_per_sequence, num_kv_heads,
                            kFp8TileKeys, Config::kHeadDim};
    const PrefillMaps maps{
        .query = make_query_tensor_map(params.query, Config::kTileQueries),
        .keys = make_page_tensor_map(pairs(arranged.keys, tiles_shape), kFp8TileKeys),
        .values = make_page_tensor_map(pairs(arranged.values, tiles_shape), kFp8TileKeys),
        .box_tokens = kFp8TileKeys};
    const int64_t kv_head_bytes =
        int64_t{2} * kFp8HeadDim * batch.max_context_length * batch.num_sequences;
    const int64_t section_kv_heads =
        std::clamp<int64_t>(kSectionBytes / std::max<int64_t>(1, kv_head_bytes), 1, num_kv_heads);
    PrefillSchedule tiles{
        .num_sequences = static_cast<int>(batch.num_sequences),
        .num_query_tiles =
            static_cast<int>(ceil_divide<int64_t>(batch.max_query_length, Config::kTileQueries)),
        .section_heads = static_cast<int>(section_kv_heads) * arguments.heads_per_kv_head,
        .next_tile = schedule_};
    const int num_tiles = tiles.num_query_tiles * tiles.num_sequences * arguments.num_heads;
    if (num_tiles == 0) return;
    tiles.num_dealt = std::min(num_multiprocessors_, num_tiles);

    constexpr int kSharedBytes = sizeof(Fp8PrefillShared<Config>);
    static_assert(kSharedBytes <= 227 * 1024, "what a block may have");
    const auto kernel = attention_prefill_fp8_kernel<Config>;
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    // It does not begin early: its block tables are the previous kernel's.
    kernel<<<tiles.num_dealt, Config::kThreads, kSharedBytes, stream_>>>(
        arguments, tiles, maps, params.pages.key_scales.as<float>(),
        params.pages.value_scales.as<float>());
    CUDA_CHECK(cudaGetLastError());
  }

  const Tensor& out_;
  const AttentionParams& params_;
  const Tensor& scratch_;
  int32_t* schedule_;
  int num_multiprocessors_;
  cudaStream_t stream_;
  Fp8PrefillScratch sizes_;
};

}  // namespace

const char* fp8_layer_problem(const AttentionParams& params) {
  if (!params.causal) return "attention is not causal";
  if (params.sliding_window != 0) return "there is a sliding window";
  if (params.softcap > 0.0f) return "scores have a softcap";
  return nullptr;
}

void launch_attention_prefill_fp8(const Tensor& out, const AttentionParams& params,
                                  const Tensor& scratch, int32_t* schedule, int num_multiprocessors,
                                  cudaStream_t stream, int64_t most_bytes) {
  const char* const problem = fp8_layer_problem(params);
  CHECK(problem == nullptr, "FP8 prefill attention: ", problem);
  CHECK(params.pages.is_fp8() && params.pages.head_dim() == kFp8HeadDim,
        "FP8 prefill attention: needs pages of float8_e4m3 with head_dim ", kFp8HeadDim);
  dispatch_element(out.dtype, [&]<typename Element>() {
    Fp8Prefill<Element>(out, params, scratch, schedule, num_multiprocessors, stream, most_bytes)
        .run();
  });
}

}  // namespace tessera
