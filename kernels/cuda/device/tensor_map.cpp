#include "kernels/cuda/device/tensor_map.h"

#include <cudaTypedefs.h>

#include <array>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/primitives/panels.h"

namespace tessera {
namespace {

// The driver's encoder, fetched at run time so that a build does not link to the driver.
PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  static const auto encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                cudaEnableDefault, &result));
    CHECK(result == cudaDriverEntryPointSuccess,
          "the NVIDIA driver has no cuTensorMapEncodeTiled, which CUDA 12.0 brought");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return encoder;
}

// The innermost dimension comes first and is contiguous. `strides`: bytes, of the others.
template <size_t kRank>
struct Layout {
  std::array<cuuint64_t, kRank> sizes;
  std::array<cuuint64_t, kRank - 1> strides;
  std::array<cuuint32_t, kRank> box;
};

CUtensorMapSwizzle swizzle_of_panel(cuuint32_t columns) {
  if (columns == 64) return CU_TENSOR_MAP_SWIZZLE_128B;
  return columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_32B;
}

template <size_t kRank>
CUtensorMap make_tensor_map(const Tensor& tensor, const Layout<kRank>& layout,
                            CUtensorMapL2promotion promotion) {
  std::array<cuuint32_t, kRank> steps;
  steps.fill(1);
  const auto type = tensor.dtype == DType::kBFloat16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                     : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  CUtensorMap map;
  const CUresult result = tensor_map_encoder()(
      &map, type, kRank, tensor.data, layout.sizes.data(), layout.strides.data(), layout.box.data(),
      steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of_panel(layout.box[0]), promotion,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(result == CUDA_SUCCESS, "the copy engine refuses tensor ", tensor.shape, ": driver error ",
        static_cast<int>(result));
  return map;
}

// A contiguous tensor. The L2 cache fetches 256 bytes at a time.
template <size_t kRank>
CUtensorMap make_tensor_map(const Tensor& tensor, const std::array<cuuint64_t, kRank>& sizes,
                            const std::array<cuuint32_t, kRank>& box) {
  Layout<kRank> layout{.sizes = sizes, .strides = {}, .box = box};
  cuuint64_t stride = size_of(tensor.dtype);
  for (size_t i = 0; i + 1 < kRank; ++i) {
    stride *= sizes[i];
    layout.strides[i] = stride;
  }
  return make_tensor_map(tensor, layout, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
}

}  // namespace

CUtensorMap make_page_tensor_map(const Tensor& pages, int box_tokens) {
  const auto size = [&](int i) { return static_cast<cuuint64_t>(pages.dim(i)); };
  return make_tensor_map<4>(pages, {size(3), size(2), size(1), size(0)},
                            {kBoxColumns, static_cast<cuuint32_t>(box_tokens), 1, 1});
}

CUtensorMap make_page_rows_tensor_map(const Tensor& pages, int box_tokens) {
  const auto size = [&](int i) { return static_cast<cuuint64_t>(pages.dim(i)); };
  const cuuint64_t row_bytes = size(3) * size_of(pages.dtype);
  const cuuint64_t head_bytes = size(2) * row_bytes;
  const auto panel_bytes =
      static_cast<cuuint32_t>(panel_row_bytes(static_cast<int64_t>(row_bytes)));
  const auto columns = panel_bytes / static_cast<cuuint32_t>(size_of(pages.dtype));
  const cuuint64_t num_panels = size(3) / columns;
  // Decode reads each row once: fetches of 256 bytes cost it 6 % of its bandwidth (H200).
  return make_tensor_map<5>(pages,
                            {.sizes = {columns, size(2), num_panels, size(1), size(0)},
                             .strides = {row_bytes, panel_bytes, head_bytes, size(1) * head_bytes},
                             .box = {columns, static_cast<cuuint32_t>(box_tokens),
                                     static_cast<cuuint32_t>(num_panels), 1, 1}},
                            CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
}

CUtensorMap make_weight_tensor_map(const Tensor& weight, int box_rows, int box_features) {
  const auto size = [&](int i) { return static_cast<cuuint64_t>(weight.dim(i)); };
  constexpr cuuint64_t kPanelBytes = kBoxColumns * 2;
  // Weights are read once, as keys and values by decode: see above (8B decode: 4,100 against 3,890
  // GB/s).
  return make_tensor_map<3>(weight,
                            {.sizes = {kBoxColumns, size(0), size(1) / kBoxColumns},
                             .strides = {size(1) * size_of(weight.dtype), kPanelBytes},
                             .box = {kBoxColumns, static_cast<cuuint32_t>(box_rows),
                                     static_cast<cuuint32_t>(box_features / kBoxColumns)}},
                            CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
}

CUtensorMap make_matrix_tensor_map(const Tensor& matrix, int box_rows, L2Fetch fetch) {
  const auto size = [&](int i) { return static_cast<cuuint64_t>(matrix.dim(i)); };
  // As above; measured when it brought all weights, 4 to 8 % of whose rate 256 bytes cost (H200).
  return make_tensor_map<2>(matrix,
                            {.sizes = {size(1), size(0)},
                             .strides = {size(1) * size_of(matrix.dtype)},
                             .box = {kBoxColumns, static_cast<cuuint32_t>(box_rows)}},
                            fetch == L2Fetch::k256 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
                                                   : CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
}

CUtensorMap make_query_tensor_map(const Tensor& query, int box_tokens) {
  const auto size = [&](int i) { return static_cast<cuuint64_t>(query.dim(i)); };
  return make_tensor_map<3>(query, {size(2), size(1), size(0)},
                            {kBoxColumns, 1, static_cast<cuuint32_t>(box_tokens)});
}

}  // namespace tessera
