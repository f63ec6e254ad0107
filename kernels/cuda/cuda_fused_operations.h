// What the skinny product (linear/skinny/kernel.h) does besides multiplying: RMSNorm before and
// after it, activation and product of gate and up, bias and rotary positions with the append to KV
// pages. For up to 1,024 tokens the gated product (linear/gated/kernel.h). And for some hundred
// tokens norms that add to the residual stream what products leave in parts (residual_parts()).
#pragma once

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/linear/skinny/kernel.h"
#include "kernels/fused_operations.h"

namespace tessera {

class CudaFusedOperations final : public FusedOperations {
 public:
  CudaFusedOperations(CudaDevice& device, CudaOperations& operations)
      : FusedOperations(operations), device_(device), operations_(operations) {}

 private:
  void begin_norm_impl(const PendingNorm& out, const Tensor& x, const Tensor& weight) override;
  void linear_add_begin_norm_impl(const Tensor& residual, const PendingNorm& next, const Tensor& x,
                                  const WeightMatrix& weight, const Tensor& norm_weight,
                                  float multiplier) override;
  void rms_norm_add_begin_norm_impl(const Tensor& residual, const PendingNorm& next,
                                    const Tensor& x, const Tensor& weight,
                                    const Tensor& norm_weight, float multiplier) override;
  void normed_linear_impl(const Tensor& out, const PendingNorm& x,
                          const WeightMatrix& weight) override;
  void normed_linear_activate_mul_impl(const Tensor& out, const PendingNorm& x,
                                       const WeightMatrix& weight, const Tensor& gate_up,
                                       Activation activation) override;
  void normed_linear_rope_store_kv_impl(const RopeStoreKvParams& to, const PendingNorm& x,
                                        const WeightMatrix& weight) override;

  // Whether the norm goes from product to product without its scale.
  bool defers_scale(const PendingNorm& norm) const;
  // What scales the sums of a product of x, where x lacks the norm's scale; else empty.
  Tensor deferred_squares(const PendingNorm& x) const;
  void launch_skinny(const SkinnyProduct& product, const SkinnyPlan& plan);

  CudaDevice& device_;
  CudaOperations& operations_;
};

}  // namespace tessera
