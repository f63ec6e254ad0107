#include <type_traits>

#include "kernels/cuda/attention/decode/fp8_warp.cuh"
#include "kernels/cuda/attention/decode/kernel_fp8.h"
#include "kernels/cuda/attention/decode/launch.cuh"
#include "kernels/cuda/attention/decode/narrow_warp.cuh"
#include "kernels/cuda/device/dispatch.h"

namespace tessera {
namespace {

// Code that only copies rows takes two bytes for one element: the copy engine, the swizzles and the
// ring are those of heads half as wide.
template <typename ElementType, int kSize, bool kIsNarrow = false>
struct Fp8DecodeFormat {
  using Element = ElementType;
  using RowElement = __half;
  using Arguments = Fp8DecodeArguments;
  using Warp = std::conditional_t<kIsNarrow, NarrowFp8DecodeWarp<ElementType, kSize>,
                                  DecodeFp8Warp<ElementType, kSize>>;
  static constexpr int kHeadDim = kSize;
  static constexpr DecodePart kPart = DecodePart::kWhole;
  static constexpr int kRowElements = kSize / 2;
};

// With 16 rows of queries, heads of 256 and float16, copies of boxes would need one register more
// than there is: these are loaded.
template <typename Element, int kHeadDim>
constexpr bool wide_copies_boxes() {
  return decode_copies_boxes(kHeadDim) && !(kHeadDim == 256 && std::is_same_v<Element, __half>);
}

template <typename Element, int kHeadDim, bool kCopyEngine>
__global__ void __launch_bounds__((DecodeThreads<kHeadDim, kCopyEngine>::kAll), 1)
    attention_decode_fp8_kernel(const __grid_constant__ Fp8DecodeArguments arguments,
                                const __grid_constant__ DecodeArguments decode,
                                const __grid_constant__ DecodePageMaps maps) {
  run_decode_block<Fp8DecodeFormat<Element, kHeadDim>, kCopyEngine>(arguments, decode, maps);
}

template <typename Element, int kHeadDim>
__global__ void __launch_bounds__((DecodeThreads<kHeadDim, true>::kAll), 1)
    attention_decode_narrow_fp8_kernel(const __grid_constant__ Fp8DecodeArguments arguments,
                                       const __grid_constant__ DecodeArguments decode,
                                       const __grid_constant__ DecodePageMaps maps) {
  using Format = Fp8DecodeFormat<Element, kHeadDim, true>;
  // Without the copy engine run_decode_block() is empty, and nothing else names these members.
  static_assert(Format::kRowElements * 2 == kHeadDim && Format::kPart == DecodePart::kWhole);
  run_decode_block<Format, true>(arguments, decode, maps);
}

Tensor in_pairs(Tensor pages) {
  pages.dtype = DType::kFloat16;
  pages.shape = {pages.dim(0), pages.dim(1), pages.dim(2), pages.dim(3) / 2};
  return pages;
}

}  // namespace

void launch_attention_decode_fp8(const Tensor& out, const AttentionParams& params,
                                 const DecodeAttentionPlan& plan, uint32_t* arrivals,
                                 cudaStream_t stream) {
  const Fp8DecodeArguments arguments = {make_attention_arguments(out, params),
                                        params.pages.key_scales.as<float>(),
                                        params.pages.value_scales.as<float>()};
  const KvPages pages = {in_pairs(params.pages.keys), in_pairs(params.pages.values)};
  dispatch_element(out.dtype, [&]<typename Element>() {
    dispatch_head_dim(params.pages.head_dim(), [&]<int kHeadDim>() {
      using Format = Fp8DecodeFormat<Element, kHeadDim>;
      if constexpr (kHeadDim % 32 != 0) {
        throw Error(concat("attention: head_dim ", kHeadDim,
                           " has no kernel for float8_e4m3 pages; supported: multiples of 32"));
      } else {
        if constexpr (decode_copies_boxes(kHeadDim)) {
          if (plan.is_narrow) {
            return launch_decode_kernel<Fp8DecodeFormat<Element, kHeadDim, true>, true>(
                attention_decode_narrow_fp8_kernel<Element, kHeadDim>, arguments, params, pages,
                plan, arrivals, stream);
          }
        }
        if constexpr (wide_copies_boxes<Element, kHeadDim>()) {
          if (plan.uses_copy_engine) {
            return launch_decode_kernel<Format, true>(
                attention_decode_fp8_kernel<Element, kHeadDim, true>, arguments, params, pages,
                plan, arrivals, stream);
          }
        }
        launch_decode_kernel<Format, false>(attention_decode_fp8_kernel<Element, kHeadDim, false>,
                                            arguments, params, pages, plan, arrivals, stream);
      }
    });
  });
}

}  // namespace tessera
