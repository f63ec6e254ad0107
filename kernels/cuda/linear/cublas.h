// Matrix products of prefill, by cuBLASLt.
#pragma once

#include <cuda_runtime_api.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>

#include "kernels/tensor/buffer.h"
#include "kernels/tensor/tensor.h"

struct cublasLtContext;

namespace tessera {

// Owns the library handle, its workspace, and the algorithm chosen for every shape seen so far.
// Bitwise reproducible: one stream, and the choice depends on the shape only.
class CublasLinear {
 public:
  // With `is_batch_invariant`, a token's results are the same bit by bit whichever tokens it is
  // computed with: every number of tokens takes the same algorithm, which sums in one order.
  explicit CublasLinear(bool is_batch_invariant);
  ~CublasLinear();
  CublasLinear(const CublasLinear&) = delete;
  CublasLinear& operator=(const CublasLinear&) = delete;

  // out = x . weight^T, or out += multiplier * x . weight^T when `accumulate`, summed in float32;
  // the multiplier is 1 otherwise
  //   out activation type or float32 [num_tokens, out_features]; float32 when accumulating
  //   x [num_tokens, in_features], weight [out_features, in_features], both bfloat16 or both
  //   float16; in_features a multiple of 8, for 16-byte aligned rows; out_features better too
  // Asks the library for an algorithm at the first use of a shape; allocates no device memory.
  void run(const Tensor& out, const Tensor& x, const Tensor& weight, bool accumulate,
           float multiplier, cudaStream_t stream);

  // The sums of out = x . weight^T over each of num_parts equal parts of in_features:
  //   float32 [num_parts, num_tokens, out_features], at most kResidualPartsBytes (linear/plan.h),
  //   which the next product may overwrite
  //   in_features a multiple of 8 * num_parts; the rest as in run()
  Tensor run_in_parts(const Tensor& x, const Tensor& weight, int num_parts, cudaStream_t stream);

 private:
  struct Problem {
    int64_t num_tokens;
    int64_t out_features;
    int64_t in_features;
    DType in_dtype;
    DType out_dtype;
    bool accumulate;
    int num_parts = 1;  // of in_features, each with a result of its own

    auto operator<=>(const Problem&) const = default;
  };
  struct Solution;

  const Solution& solve(const Problem& problem);
  void choose_algorithm(Solution& solution, const Problem& problem) const;
  void launch(const Problem& problem, const Tensor& out, const Tensor& x, const Tensor& weight,
              float multiplier, cudaStream_t stream);

  bool is_batch_invariant_;
  cublasLtContext* handle_ = nullptr;
  Buffer workspace_;
  std::map<Problem, std::unique_ptr<Solution>> solutions_;
};

}  // namespace tessera
