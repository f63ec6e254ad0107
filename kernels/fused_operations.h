// Neighbouring operations of a decoder block that a device may compute at once: a matrix product
// with what stands beside it.
//
// Each is defined by the operations (kernels/operations.h) that it stands for, which are also what
// runs where a device has nothing faster. Results may differ by rounding alone. The rules of early
// reads are those of Operations.
#pragma once

#include <cstdint>

#include "kernels/operations.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

// A norm's result on its way from the operation that makes it to the products that read it. It need
// not be normalised yet: the device chooses its form, the same for all operations on as many
// tokens. It is either `values` alone, or `values` without RMSNorm's scale, which `squares` then
// gives.
struct PendingNorm {
  static constexpr int64_t kSquaresFeatures = 32;

  Tensor values;   // activation [num_tokens, hidden_size]
  Tensor squares;  // float32 [num_tokens, num_squares(hidden_size)]
  float epsilon = 0.0f;
  NormKind kind = NormKind::kRmsNorm;

  // Columns of `squares`.
  static int64_t num_squares(int64_t hidden_size) {
    return ceil_divide(hidden_size, kSquaresFeatures);
  }
};

class FusedOperations {
 public:
  explicit FusedOperations(Operations& operations) : operations_(operations) {}
  virtual ~FusedOperations() = default;
  FusedOperations(const FusedOperations&) = delete;
  FusedOperations& operator=(const FusedOperations&) = delete;

  Operations& operations() const { return operations_; }

  // out = norm(out.kind, x, weight, out.epsilon), for the functions below only; with an empty
  // weight there is no norm, and out = cast(x)
  void begin_norm(const PendingNorm& out, const Tensor& x, const Tensor& weight);

  // linear_add(residual, x, weight, multiplier), then begin_norm(next, residual, norm_weight)
  void linear_add_begin_norm(const Tensor& residual, const PendingNorm& next, const Tensor& x,
                             const WeightMatrix& weight, const Tensor& norm_weight,
                             float multiplier = 1.0f);

  // rms_norm_add(residual, x, weight, next.epsilon, multiplier), then
  // begin_norm(next, residual, norm_weight)
  void rms_norm_add_begin_norm(const Tensor& residual, const PendingNorm& next, const Tensor& x,
                               const Tensor& weight, const Tensor& norm_weight, float multiplier);

  // out = x . weight^T + bias, out activation; the rest as in linear()
  void normed_linear(const Tensor& out, const PendingNorm& x, const WeightMatrix& weight);

  // out = activate_mul(x . weight^T + bias, activation)
  //   out activation [num_tokens, intermediate_size], weight [2 * intermediate_size, hidden_size]
  //   gate_up activation [num_tokens, 2 * intermediate_size], scratch
  void normed_linear_activate_mul(const Tensor& out, const PendingNorm& x,
                                  const WeightMatrix& weight, const Tensor& gate_up,
                                  Activation activation);

  // rope_store_kv(to) of to.qkv = x . weight^T + bias; what to.qkv holds afterwards is unspecified.
  //   weight [(num_heads + 2 * num_kv_heads) * head_dim, hidden_size]
  void normed_linear_rope_store_kv(const RopeStoreKvParams& to, const PendingNorm& x,
                                   const WeightMatrix& weight);

 protected:
  // By default these call the single operations, one after the other, and x.values is complete.
  virtual void begin_norm_impl(const PendingNorm& out, const Tensor& x, const Tensor& weight);
  virtual void linear_add_begin_norm_impl(const Tensor& residual, const PendingNorm& next,
                                          const Tensor& x, const WeightMatrix& weight,
                                          const Tensor& norm_weight, float multiplier);
  virtual void rms_norm_add_begin_norm_impl(const Tensor& residual, const PendingNorm& next,
                                            const Tensor& x, const Tensor& weight,
                                            const Tensor& norm_weight, float multiplier);
  virtual void normed_linear_impl(const Tensor& out, const PendingNorm& x,
                                  const WeightMatrix& weight);
  virtual void normed_linear_activate_mul_impl(const Tensor& out, const PendingNorm& x,
                                               const WeightMatrix& weight, const Tensor& gate_up,
                                               Activation activation);
  virtual void normed_linear_rope_store_kv_impl(const RopeStoreKvParams& to, const PendingNorm& x,
                                                const WeightMatrix& weight);

 private:
  Operations& operations_;
};

}  // namespace tessera
