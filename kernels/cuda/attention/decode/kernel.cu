#include <type_traits>

#include "kernels/cuda/attention/decode/kernel.h"
#include "kernels/cuda/attention/decode/kernel_fp8.h"
#include "kernels/cuda/attention/decode/launch.cuh"
#include "kernels/cuda/attention/decode/narrow_warp.cuh"
#include "kernels/cuda/attention/decode/warp.cuh"
#include "kernels/cuda/device/dispatch.h"

namespace tessera {
namespace {

// Keys and values in the type of queries.
template <typename ElementType, int kSize, bool kIsNarrow = false>
struct DecodeFormat {
  using Element = ElementType;
  using RowElement = ElementType;
  using Arguments = AttentionArguments;
  using Warp = std::conditional_t<kIsNarrow, NarrowDecodeWarp<ElementType, kSize>,
                                  DecodeWarp<ElementType, kSize>>;
  static constexpr int kHeadDim = kSize;
  static constexpr DecodePart kPart = DecodePart::kWhole;
  static constexpr int kRowElements = kSize;
};

template <typename Element, int kHeadDim, bool kCopyEngine>
__global__ void __launch_bounds__((DecodeThreads<kHeadDim, kCopyEngine>::kAll), 1)
    attention_decode_kernel(const __grid_constant__ AttentionArguments arguments,
                            const __grid_constant__ DecodeArguments decode,
                            const __grid_constant__ DecodePageMaps maps) {
  run_decode_block<DecodeFormat<Element, kHeadDim>, kCopyEngine>(arguments, decode, maps);
}

template <typename Element, int kHeadDim>
__global__ void __launch_bounds__((DecodeThreads<kHeadDim, true>::kAll), 1)
    attention_decode_narrow_kernel(const __grid_constant__ AttentionArguments arguments,
                                   const __grid_constant__ DecodeArguments decode,
                                   const __grid_constant__ DecodePageMaps maps) {
  using Format = DecodeFormat<Element, kHeadDim, true>;
  // Without the copy engine run_decode_block() is empty, and nothing else names these members.
  static_assert(Format::kRowElements == kHeadDim && Format::kPart == DecodePart::kWhole);
  run_decode_block<Format, true>(arguments, decode, maps);
}

}  // namespace

void launch_attention_decode(const Tensor& out, const AttentionParams& params,
                             const DecodeAttentionPlan& plan, uint32_t* arrivals,
                             cudaStream_t stream) {
  if (params.pages.is_fp8()) {
    return launch_attention_decode_fp8(out, params, plan, arrivals, stream);
  }
  const AttentionArguments arguments = make_attention_arguments(out, params);
  dispatch_element(out.dtype, [&]<typename Element>() {
    dispatch_head_dim(params.pages.head_dim(), [&]<int kHeadDim>() {
      using Format = DecodeFormat<Element, kHeadDim>;
      if constexpr (decode_copies_boxes(2 * kHeadDim)) {
        if (plan.is_narrow) {
          return launch_decode_kernel<DecodeFormat<Element, kHeadDim, true>, true>(
              attention_decode_narrow_kernel<Element, kHeadDim>, arguments, params, params.pages,
              plan, arrivals, stream);
        }
        if (plan.uses_copy_engine) {
          return launch_decode_kernel<Format, true>(
              attention_decode_kernel<Element, kHeadDim, true>, arguments, params, params.pages,
              plan, arrivals, stream);
        }
      }
      launch_decode_kernel<Format, false>(attention_decode_kernel<Element, kHeadDim, false>,
                                          arguments, params, params.pages, plan, arrivals, stream);
    });
  });
}

}  // namespace tessera
