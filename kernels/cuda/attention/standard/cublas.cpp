#include "kernels/cuda/attention/standard/cublas.h"

#include "kernels/cuda/attention/standard/masked_softmax.h"
#include "kernels/cuda/device/cublas_check.h"

namespace tessera {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;

// out[i] = a[i] . b[i], row-major, for every i below batch_size
//   out [batch_size, rows, columns], a [batch_size, rows, depth],
//   b [batch_size, columns, depth] if b_is_transposed, else [batch_size, depth, columns]
struct BatchedProduct {
  int64_t batch_size;
  int64_t rows;
  int64_t columns;
  int64_t depth;
  bool b_is_transposed;
};

// The library's descriptors, freed at the end of the call.
using Operation = std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(&cublasLtMatmulDescDestroy)>;
using Layout =
    std::unique_ptr<cublasLtMatrixLayoutOpaque_t, decltype(&cublasLtMatrixLayoutDestroy)>;
using Preference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(&cublasLtMatmulPreferenceDestroy)>;

// A row-major [batch_size, rows, columns], which the library sees as columns x rows.
Layout make_layout(DType dtype, int64_t batch_size, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  CUBLAS_CHECK(cublas().matrix_layout_create(&layout, cublas_type(dtype),
                                             static_cast<uint64_t>(columns),
                                             static_cast<uint64_t>(rows), columns));
  Layout owner(layout, cublas().matrix_layout_destroy);
  const auto count = static_cast<int32_t>(batch_size);
  const int64_t stride = rows * columns;
  CUBLAS_CHECK(cublas().matrix_layout_set_attribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &count, sizeof(count)));
  CUBLAS_CHECK(cublas().matrix_layout_set_attribute(
      layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)));
  return owner;
}

class CublasStandardAttention final : public StandardAttention {
 public:
  explicit CublasStandardAttention(cudaStream_t stream) : stream_(stream) {
    CUBLAS_CHECK(cublas().create(&handle_));
  }
  ~CublasStandardAttention() override { cublas().destroy(handle_); }

  size_t scratch_bytes(const StandardAttentionParams& params) const override {
    const Shape& query = params.query.shape;
    const Shape scores{query[0], query[1], query[2], params.keys.dim(2)};
    return kWorkspaceBytes +
           static_cast<size_t>(scores.num_elements()) * size_of(params.query.dtype);
  }

  void run(const Tensor& out, const StandardAttentionParams& params) override {
    const Shape& query = params.query.shape;
    const int64_t num_kv_heads = params.keys.dim(1);
    const int64_t context_length = params.keys.dim(2);
    const int64_t head_dim = query[3];
    CHECK(context_length % 8 == 0 && head_dim % 8 == 0, "standard attention: a context of ",
          context_length, " tokens with heads of ", head_dim,
          " is not made of multiples of 8, which fast matrix products need");
    CHECK(params.scratch.size_bytes() >= scratch_bytes(params), "standard attention: scratch of ",
          params.scratch.size_bytes(), " bytes, expected ", scratch_bytes(params));
    workspace_ = params.scratch.data;
    const Tensor scores{static_cast<std::byte*>(workspace_) + kWorkspaceBytes,
                        params.query.dtype,
                        params.query.device,
                        {query[0], query[1], query[2], context_length}};

    const int64_t batch_size = query[0] * num_kv_heads;
    const int64_t rows = query[1] / num_kv_heads * query[2];
    multiply(scores, params.query, params.keys,
             {batch_size, rows, context_length, head_dim, /*b_is_transposed=*/true});
    launch_masked_softmax(scores, params, stream_);
    multiply(out, scores, params.values,
             {batch_size, rows, head_dim, context_length, /*b_is_transposed=*/false});
  }

 private:
  // In the library's column-major words this is out^T = b^T . a^T.
  void multiply(const Tensor& out, const Tensor& a, const Tensor& b,
                const BatchedProduct& product) const {
    const auto& [batch_size, rows, columns, depth, b_is_transposed] = product;
    const Layout out_layout = make_layout(out.dtype, batch_size, rows, columns);
    const Layout a_layout = make_layout(a.dtype, batch_size, rows, depth);
    const Layout b_layout = b_is_transposed ? make_layout(b.dtype, batch_size, columns, depth)
                                            : make_layout(b.dtype, batch_size, depth, columns);

    cublasLtMatmulDesc_t description = nullptr;
    CUBLAS_CHECK(cublas().matmul_desc_create(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const Operation operation(description, cublas().matmul_desc_destroy);
    const cublasOperation_t b_operation = b_is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUBLAS_CHECK(cublas().matmul_desc_set_attribute(description, CUBLASLT_MATMUL_DESC_TRANSA,
                                                    &b_operation, sizeof(b_operation)));

    cublasLtMatmulPreference_t limits = nullptr;
    CUBLAS_CHECK(cublas().matmul_preference_create(&limits));
    const Preference preference(limits, cublas().matmul_preference_destroy);
    const size_t workspace_bytes = kWorkspaceBytes;
    CUBLAS_CHECK(
        cublas().matmul_preference_set_attribute(limits, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &workspace_bytes, sizeof(workspace_bytes)));
    cublasLtMatmulHeuristicResult_t choice{};
    int num_choices = 0;
    CUBLAS_CHECK(cublas().matmul_algo_get_heuristic(
        handle_, description, b_layout.get(), a_layout.get(), out_layout.get(), out_layout.get(),
        limits, 1, &choice, &num_choices));
    CHECK(num_choices == 1, "standard attention: no algorithm for ", batch_size, " products of [",
          rows, ", ", depth, "] and [", depth, ", ", columns, "]");
    const float alpha = 1.0f;
    const float beta = 0.0f;
    CUBLAS_CHECK(cublas().matmul(handle_, description, &alpha, b.data, b_layout.get(), a.data,
                                 a_layout.get(), &beta, out.data, out_layout.get(), out.data,
                                 out_layout.get(), &choice.algo, workspace_, kWorkspaceBytes,
                                 stream_));
  }

  cudaStream_t stream_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;  // of the run under way
};

}  // namespace

std::unique_ptr<StandardAttention> make_cublas_standard_attention(cudaStream_t stream) {
  return std::make_unique<CublasStandardAttention>(stream);
}

}  // namespace tessera
