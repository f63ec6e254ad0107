#include <type_traits>

#include "kernels/cuda/attention/decode/kernel_shared.h"
#include "kernels/cuda/attention/decode/launch.cuh"
#include "kernels/cuda/attention/decode/narrow_warp.cuh"
#include "kernels/cuda/attention/decode/shared_prefix.h"
#include "kernels/cuda/attention/decode/warp.cuh"
#include "kernels/cuda/device/dispatch.h"

namespace tessera {
namespace {

template <typename ElementType, DecodePart kReadPart, bool kIsNarrow>
struct SharedPrefixFormat {
  using Element = ElementType;
  using RowElement = ElementType;
  using Arguments = SharedPrefixArguments;
  static constexpr int kHeadDim = 128;
  static constexpr int kRowElements = kHeadDim;
  static constexpr DecodePart kPart = kReadPart;
  using Warp = std::conditional_t<kIsNarrow, NarrowDecodeWarp<ElementType, kHeadDim>,
                                  DecodeWarp<ElementType, kHeadDim>>;
};

template <typename Format>
__global__ void __launch_bounds__((DecodeThreads<Format::kHeadDim, true>::kAll), 1)
    attention_decode_part_kernel(const __grid_constant__ SharedPrefixArguments arguments,
                                 const __grid_constant__ DecodeArguments decode,
                                 const __grid_constant__ DecodePageMaps maps) {
  // Without the copy engine run_decode_block() is empty, and nothing else names these members.
  static_assert(Format::kRowElements == Format::kHeadDim && Format::kPart != DecodePart::kWhole);
  run_decode_block<Format, true>(arguments, decode, maps);
}

// The arguments with groups in the place of sequences: a group has the queries of all its decodes,
// which all see the whole prefix.
SharedPrefixArguments of_groups(SharedPrefixArguments arguments, const SharedPrefixes& shared) {
  arguments.query_starts = shared.group_starts.as<int32_t>();
  arguments.context_lengths = shared.lengths.as<int32_t>();
  arguments.num_decodes = static_cast<int>(shared.num_groups);
  arguments.causal = false;
  return arguments;
}

}  // namespace

void launch_attention_decode_shared(const Tensor& out, const AttentionParams& params,
                                    const DecodeAttentionPlan& shared_plan,
                                    const DecodeAttentionPlan& own_plan, const Tensor& rows,
                                    uint32_t* arrivals, cudaStream_t stream) {
  const SharedPrefixes& shared = params.batch.shared;
  const int64_t num_rows = params.batch.num_decodes * params.query.dim(1);
  const int64_t row_elements = params.pages.head_dim();
  CHECK(rows.num_elements() >= num_rows * (row_elements + 1), "attention: scratch ", rows.shape,
        " is too small for ", num_rows, " rows of shared prefixes");
  SharedPrefixArguments arguments = {make_attention_arguments(out, params),
                                     {.outputs = rows.as<float>(),
                                      .log_sums = rows.as<float>() + num_rows * row_elements,
                                      .own_begins = shared.own_begins.as<int32_t>()}};
  dispatch_element(out.dtype, [&]<typename Element>() {
    const auto launch = [&]<DecodePart kPart, bool kIsNarrow>(const SharedPrefixArguments& of_part,
                                                              const DecodeAttentionPlan& plan) {
      using Format = SharedPrefixFormat<Element, kPart, kIsNarrow>;
      launch_decode_kernel<Format, true>(attention_decode_part_kernel<Format>, of_part, params,
                                         params.pages, plan, arrivals, stream);
    };
    launch.template operator()<DecodePart::kShared, false>(of_groups(arguments, shared),
                                                           shared_plan);
    if (own_plan.is_narrow) {
      launch.template operator()<DecodePart::kOwn, true>(arguments, own_plan);
    } else {
      launch.template operator()<DecodePart::kOwn, false>(arguments, own_plan);
    }
  });
}

}  // namespace tessera
