#include "kernels/cuda/linear/cublas.h"

#include "kernels/cuda/device/cublas_check.h"
#include "kernels/cuda/device/memory.h"

namespace tessera {
namespace {

// What NVIDIA recommends for Hopper; with less, the library silently leaves out algorithms.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

// For so many tokens the algorithm is chosen that all numbers of tokens take. Tiles of so many are
// still as fast as memory with few tokens, and not much slower than larger ones with many.
constexpr int64_t kInvariantTokens = 128;

template <typename Value>
void set_attribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                   Value value) {
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)));
}

}  // namespace

// Column-major names: the row-major out [num_tokens, out_features] is out^T = weight . x^T, where
// weight is stored transposed. That is the "TN" form for which every data type has fast kernels.
struct CublasLinear::Solution {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t weight = nullptr;
  cublasLtMatrixLayout_t x = nullptr;
  cublasLtMatrixLayout_t out = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  Solution() = default;
  Solution(const Solution&) = delete;
  Solution& operator=(const Solution&) = delete;
  ~Solution() {
    cublasLtMatrixLayoutDestroy(out);
    cublasLtMatrixLayoutDestroy(x);
    cublasLtMatrixLayoutDestroy(weight);
    cublasLtMatmulDescDestroy(operation);
  }
};

CublasLinear::CublasLinear(bool is_batch_invariant)
    : is_batch_invariant_(is_batch_invariant),
      workspace_(allocate_device_memory(kWorkspaceBytes, "the workspace of matrix products")) {
  CUBLAS_CHECK(cublasLtCreate(&handle_));
}

CublasLinear::~CublasLinear() {
  solutions_.clear();
  cublasLtDestroy(handle_);
}

const CublasLinear::Solution& CublasLinear::solve(const Problem& problem) {
  std::unique_ptr<Solution>& entry = solutions_[problem];
  if (entry != nullptr) return *entry;

  auto solution = std::make_unique<Solution>();
  const auto rows = static_cast<uint64_t>(problem.out_features);
  const auto columns = static_cast<uint64_t>(problem.num_tokens);
  const auto depth = static_cast<uint64_t>(problem.in_features);
  const cudaDataType_t in_type = cublas_type(problem.in_dtype);
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&solution->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  set_attribute(solution->operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  CUBLAS_CHECK(
      cublasLtMatrixLayoutCreate(&solution->weight, in_type, depth, rows, problem.in_features));
  CUBLAS_CHECK(
      cublasLtMatrixLayoutCreate(&solution->x, in_type, depth, columns, problem.in_features));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&solution->out, cublas_type(problem.out_dtype), rows,
                                          columns, problem.out_features));

  if (is_batch_invariant_ && problem.num_tokens != kInvariantTokens) {
    Problem chosen = problem;
    chosen.num_tokens = kInvariantTokens;
    solution->algorithm = solve(chosen).algorithm;
  } else {
    choose_algorithm(*solution, problem);
  }
  entry = std::move(solution);
  return *entry;
}

void CublasLinear::choose_algorithm(Solution& solution, const Problem& problem) const {
  // The first choice, untimed. On an H200, prefill runs into the power limit (700 W) and the clock
  // falls: candidates that are 2 to 15 % faster alone change the layers' time by -2.5 to +1.5 %.
  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  cublasLtMatmulHeuristicResult_t result{};
  int num_results = 0;
  const size_t workspace_bytes = kWorkspaceBytes;
  cublasStatus_t status =
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &workspace_bytes, sizeof(workspace_bytes));
  if (status == CUBLAS_STATUS_SUCCESS && is_batch_invariant_) {
    // How many parts in_features is divided into would depend on the number of tokens.
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
    status = cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes));
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmulAlgoGetHeuristic(handle_, solution.operation, solution.weight,
                                            solution.x, solution.out, solution.out, preference, 1,
                                            &result, &num_results);
  }
  cublasLtMatmulPreferenceDestroy(preference);
  CHECK(status == CUBLAS_STATUS_SUCCESS && num_results == 1, "no algorithm for the product of [",
        problem.num_tokens, ", ", problem.in_features, "] and [", problem.out_features, ", ",
        problem.in_features, "]: ", cublasLtGetStatusString(status));
  solution.algorithm = result.algo;
}

void CublasLinear::run(const Tensor& out, const Tensor& x, const Tensor& weight, bool accumulate,
                       float multiplier, cudaStream_t stream) {
  const Solution& solution = solve({.num_tokens = x.dim(0),
                                    .out_features = weight.dim(0),
                                    .in_features = weight.dim(1),
                                    .in_dtype = x.dtype,
                                    .out_dtype = out.dtype,
                                    .accumulate = accumulate});
  const float beta = accumulate ? 1.0f : 0.0f;
  CUBLAS_CHECK(cublasLtMatmul(handle_, solution.operation, &multiplier, weight.data,
                              solution.weight, x.data, solution.x, &beta, out.data, solution.out,
                              out.data, solution.out, &solution.algorithm, workspace_.data(),
                              workspace_.size_bytes(), stream));
}

}  // namespace tessera
