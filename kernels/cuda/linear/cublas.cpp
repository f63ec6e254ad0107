#include "kernels/cuda/linear/cublas.h"

#include <array>
#include <span>

#include "kernels/cuda/device/cublas_check.h"
#include "kernels/cuda/device/memory.h"
#include "kernels/cuda/linear/plan.h"

namespace tessera {
namespace {

// What NVIDIA recommends for Hopper; with less, the library silently leaves out algorithms.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;
// Products in parts leave these at the beginning of the workspace, and the rest to the library.
constexpr size_t kPartsBytes = size_t{kResidualPartsBytes};
static_assert(kPartsBytes < kWorkspaceBytes);
constexpr size_t workspace_begin(int num_parts) { return num_parts > 1 ? kPartsBytes : 0; }

// For so many tokens the algorithm is chosen that all numbers of tokens take. Tiles of so many are
// still as fast as memory with few tokens, and not much slower than larger ones with many.
constexpr int64_t kInvariantTokens = 128;

// How many of the library's proposals are looked at, the one that it expects to be fastest first.
constexpr int kProposals = 8;

// A grid of blocks that fills the GPU so often, or oftener, loses little in its last round.
constexpr float kManyWaves = 16.0f;

// The block's tile of the output, in the library's words: features x tokens.
cublasLtMatmulTile_t tile_of(const cublasLtMatmulAlgo_t& algorithm) {
  uint32_t tile = CUBLASLT_MATMUL_TILE_UNDEFINED;
  size_t bytes_written = 0;
  CUBLAS_CHECK(cublas().matmul_algo_config_get_attribute(&algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID,
                                                         &tile, sizeof(tile), &bytes_written));
  return static_cast<cublasLtMatmulTile_t>(tile);
}

// Over four times as long as wide: such a block reads more for its products than a square one.
bool is_narrow(cublasLtMatmulTile_t tile) {
  switch (tile) {
    case CUBLASLT_MATMUL_TILE_384x64:
    case CUBLASLT_MATMUL_TILE_448x64:
    case CUBLASLT_MATMUL_TILE_512x64:
    case CUBLASLT_MATMUL_TILE_512x72:
    case CUBLASLT_MATMUL_TILE_512x80:
    case CUBLASLT_MATMUL_TILE_64x512:
      return true;
    default:
      return false;
  }
}

// Which proposal is taken: the first, but for two things that were measured on an H200
// (docs/experiments/batches.md). Where a narrow tile came first, another was never slower: gate and
// up of an 8B model take 289 us for 448 tokens in tiles of 512 x 64 and 164 in the next. And where
// blocks are many, so that the GPU runs into its power limit, tiles of 176 x 128 take 2 to 6 % less
// time than the two larger ones, although they read more.
const cublasLtMatmulHeuristicResult_t& choose(
    std::span<const cublasLtMatmulHeuristicResult_t> proposals) {
  const cublasLtMatmulTile_t first = tile_of(proposals[0].algo);
  if (first == CUBLASLT_MATMUL_TILE_320x128 || first == CUBLASLT_MATMUL_TILE_192x192) {
    for (const auto& proposal : proposals) {
      if (tile_of(proposal.algo) == CUBLASLT_MATMUL_TILE_176x128 &&
          proposal.wavesCount >= kManyWaves) {
        return proposal;
      }
    }
  }
  for (const auto& proposal : proposals) {
    if (!is_narrow(tile_of(proposal.algo))) return proposal;
  }
  return proposals[0];
}

// The same matrix num_parts times, each `distance` elements behind the one before.
void repeat(cublasLtMatrixLayout_t matrix, int32_t num_parts, int64_t distance) {
  CUBLAS_CHECK(cublas().matrix_layout_set_attribute(matrix, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &num_parts, sizeof(num_parts)));
  CUBLAS_CHECK(cublas().matrix_layout_set_attribute(
      matrix, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &distance, sizeof(distance)));
}

template <typename Value>
void set_attribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                   Value value) {
  CUBLAS_CHECK(cublas().matmul_desc_set_attribute(operation, attribute, &value, sizeof(value)));
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
    cublas().matrix_layout_destroy(out);
    cublas().matrix_layout_destroy(x);
    cublas().matrix_layout_destroy(weight);
    cublas().matmul_desc_destroy(operation);
  }
};

CublasLinear::CublasLinear(bool is_batch_invariant)
    : is_batch_invariant_(is_batch_invariant),
      workspace_(allocate_device_memory(kWorkspaceBytes, "the workspace of matrix products")) {
  CUBLAS_CHECK(cublas().create(&handle_));
}

CublasLinear::~CublasLinear() {
  solutions_.clear();
  cublas().destroy(handle_);
}

const CublasLinear::Solution& CublasLinear::solve(const Problem& problem) {
  std::unique_ptr<Solution>& entry = solutions_[problem];
  if (entry != nullptr) return *entry;

  auto solution = std::make_unique<Solution>();
  const auto rows = static_cast<uint64_t>(problem.out_features);
  const auto columns = static_cast<uint64_t>(problem.num_tokens);
  const int64_t part_features = problem.in_features / problem.num_parts;
  const auto depth = static_cast<uint64_t>(part_features);
  const cudaDataType_t in_type = cublas_type(problem.in_dtype);
  CUBLAS_CHECK(cublas().matmul_desc_create(&solution->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  set_attribute(solution->operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  CUBLAS_CHECK(
      cublas().matrix_layout_create(&solution->weight, in_type, depth, rows, problem.in_features));
  CUBLAS_CHECK(
      cublas().matrix_layout_create(&solution->x, in_type, depth, columns, problem.in_features));
  CUBLAS_CHECK(cublas().matrix_layout_create(&solution->out, cublas_type(problem.out_dtype), rows,
                                             columns, problem.out_features));
  if (problem.num_parts > 1) {
    repeat(solution->weight, problem.num_parts, part_features);
    repeat(solution->x, problem.num_parts, part_features);
    repeat(solution->out, problem.num_parts, problem.num_tokens * problem.out_features);
  }

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
  // Untimed: the choice depends on the shape only, and so do the results.
  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_CHECK(cublas().matmul_preference_create(&preference));
  std::array<cublasLtMatmulHeuristicResult_t, kProposals> proposals{};
  int num_results = 0;
  const size_t workspace_bytes = kWorkspaceBytes - workspace_begin(problem.num_parts);
  cublasStatus_t status =
      cublas().matmul_preference_set_attribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof(workspace_bytes));
  if (status == CUBLAS_STATUS_SUCCESS && is_batch_invariant_) {
    // How many parts in_features is divided into would depend on the number of tokens.
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
    status = cublas().matmul_preference_set_attribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes));
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublas().matmul_algo_get_heuristic(handle_, solution.operation, solution.weight,
                                                solution.x, solution.out, solution.out, preference,
                                                kProposals, proposals.data(), &num_results);
  }
  cublas().matmul_preference_destroy(preference);
  CHECK(status == CUBLAS_STATUS_SUCCESS && num_results > 0, "no algorithm for the product of [",
        problem.num_tokens, ", ", problem.in_features, "] and [", problem.out_features, ", ",
        problem.in_features, "]: ", cublas().get_status_string(status));
  solution.algorithm = choose(std::span(proposals).first(static_cast<size_t>(num_results))).algo;
}

void CublasLinear::run(const Tensor& out, const Tensor& x, const Tensor& weight, bool accumulate,
                       float multiplier, cudaStream_t stream) {
  launch({.num_tokens = x.dim(0),
          .out_features = weight.dim(0),
          .in_features = weight.dim(1),
          .in_dtype = x.dtype,
          .out_dtype = out.dtype,
          .accumulate = accumulate},
         out, x, weight, multiplier, stream);
}

Tensor CublasLinear::run_in_parts(const Tensor& x, const Tensor& weight, int num_parts,
                                  cudaStream_t stream) {
  const Tensor parts{
      workspace_.data(), DType::kFloat32, x.device, {num_parts, x.dim(0), weight.dim(0)}};
  CHECK(parts.size_bytes() <= kPartsBytes, "the parts of a product, ", parts.shape, ", have ",
        parts.size_bytes(), " bytes; at most ", kPartsBytes);
  launch({.num_tokens = x.dim(0),
          .out_features = weight.dim(0),
          .in_features = weight.dim(1),
          .in_dtype = x.dtype,
          .out_dtype = parts.dtype,
          .accumulate = false,
          .num_parts = num_parts},
         parts, x, weight, 1.0f, stream);
  return parts;
}

void CublasLinear::launch(const Problem& problem, const Tensor& out, const Tensor& x,
                          const Tensor& weight, float multiplier, cudaStream_t stream) {
  const Solution& solution = solve(problem);
  const float beta = problem.accumulate ? 1.0f : 0.0f;
  const size_t begin = workspace_begin(problem.num_parts);
  CUBLAS_CHECK(cublas().matmul(
      handle_, solution.operation, &multiplier, weight.data, solution.weight, x.data, solution.x,
      &beta, out.data, solution.out, out.data, solution.out, &solution.algorithm,
      static_cast<std::byte*>(workspace_.data()) + begin, workspace_.size_bytes() - begin, stream));
}

}  // namespace tessera
