#include "kernels/cuda/cuda_fused_operations.h"

#include "kernels/cuda/linear/gated/kernel.h"
#include "kernels/cuda/rows/add_bias.h"
#include "kernels/cuda/rows/rms_norm.h"
#include "kernels/cuda/rows/rms_norm_add.h"
#include "kernels/cuda/rows/rope_store_kv.h"

namespace tessera {

static_assert(PendingNorm::kSquaresFeatures == kSquaresFeatures);

namespace {

// fused_products_block_problem() lets no block with other norms through. The check says so where
// somebody forgets to ask it.
void check_is_rms_norm(const PendingNorm& norm, const Tensor& weight) {
  CHECK(norm.kind == NormKind::kRmsNorm && !weight.empty(),
        "the fused products compute RMSNorm with weights only");
}

}  // namespace

void CudaFusedOperations::launch_skinny(const SkinnyProduct& product, const SkinnyPlan& plan) {
  launch_linear_skinny_sm90(product, plan, device_.gpu().num_multiprocessors, device_.stream());
}

// Without the scale, a row may lie outside of float16's range.
bool CudaFusedOperations::defers_scale(const PendingNorm& norm) const {
  return operations_.activation_dtype() == DType::kBFloat16 &&
         defers_norm_scale(norm.values.dim(0), norm.values.dim(1), device_.gpu());
}

Tensor CudaFusedOperations::deferred_squares(const PendingNorm& x) const {
  return defers_scale(x) ? x.squares : Tensor{};
}

void CudaFusedOperations::begin_norm_impl(const PendingNorm& out, const Tensor& x,
                                          const Tensor& weight) {
  if (!defers_scale(out)) return FusedOperations::begin_norm_impl(out, x, weight);
  check_is_rms_norm(out, weight);
  launch_rms_norm_unscaled(out.values, out.squares, x, weight, device_.stream());
}

void CudaFusedOperations::linear_add_begin_norm_impl(const Tensor& residual,
                                                     const PendingNorm& next, const Tensor& x,
                                                     const WeightMatrix& weight,
                                                     const Tensor& norm_weight, float multiplier) {
  if (!defers_scale(next)) {
    const int num_parts =
        residual_parts({x.dim(0), weight.out_features, weight.in_features}, device_.gpu());
    if (num_parts == 1 || !weight.bias.empty() || next.kind != NormKind::kRmsNorm ||
        norm_weight.empty()) {
      return FusedOperations::linear_add_begin_norm_impl(residual, next, x, weight, norm_weight,
                                                         multiplier);
    }
    return launch_add_rms_norm(next.values, residual,
                               operations_.linear_in_parts(x, weight, num_parts), multiplier,
                               norm_weight, next.epsilon, device_.stream());
  }
  if (!weight.bias.empty()) {
    operations_.linear_add(residual, x, weight, multiplier);
    return begin_norm_impl(next, residual, norm_weight);
  }
  check_is_rms_norm(next, norm_weight);
  launch_skinny({.out = residual,
                 .x = x,
                 .weight = weight.data,
                 .accumulate = true,
                 .multiplier = multiplier,
                 .norm = {.values = next.values, .squares = next.squares, .weight = norm_weight}},
                operations_.linear_plan(x, weight).skinny);
}

void CudaFusedOperations::rms_norm_add_begin_norm_impl(const Tensor& residual,
                                                       const PendingNorm& next, const Tensor& x,
                                                       const Tensor& weight,
                                                       const Tensor& norm_weight,
                                                       float multiplier) {
  if (!defers_scale(next)) {
    return FusedOperations::rms_norm_add_begin_norm_impl(residual, next, x, weight, norm_weight,
                                                         multiplier);
  }
  check_is_rms_norm(next, norm_weight);
  launch_rms_norm_add(residual, x, weight, next.epsilon, multiplier,
                      {.values = next.values, .squares = next.squares, .weight = norm_weight},
                      device_.stream());
}

void CudaFusedOperations::normed_linear_impl(const Tensor& out, const PendingNorm& x,
                                             const WeightMatrix& weight) {
  if (!defers_scale(x)) return FusedOperations::normed_linear_impl(out, x, weight);
  launch_skinny({.out = out,
                 .x = x.values,
                 .weight = weight.data,
                 .x_squares = x.squares,
                 .epsilon = x.epsilon},
                operations_.linear_plan(x.values, weight).skinny);
  if (!weight.bias.empty()) launch_add_bias(out, weight.bias, 1.0f, device_.stream());
}

void CudaFusedOperations::normed_linear_activate_mul_impl(const Tensor& out, const PendingNorm& x,
                                                          const WeightMatrix& weight,
                                                          const Tensor& gate_up,
                                                          Activation activation) {
  const int num_multiprocessors = device_.gpu().num_multiprocessors;
  if (!weight.bias.empty()) {
    return FusedOperations::normed_linear_activate_mul_impl(out, x, weight, gate_up, activation);
  }
  if (operations_.linear_plan(x.values, weight).kernel == LinearKernel::kSkinny) {
    return launch_skinny({.out = out,
                          .x = x.values,
                          .weight = weight.data,
                          .is_gated = true,
                          .activation = activation,
                          .x_squares = deferred_squares(x),
                          .epsilon = x.epsilon},
                         plan_gated_skinny(out.dim(0), out.dim(1), num_multiprocessors));
  }
  if (takes_gated(out.dim(0), out.dim(1), device_.gpu())) {
    return launch_linear_gated_sm90(out, x.values, weight.data, activation,
                                    plan_gated(out.dim(0), out.dim(1), num_multiprocessors),
                                    num_multiprocessors, device_.stream());
  }
  FusedOperations::normed_linear_activate_mul_impl(out, x, weight, gate_up, activation);
}

void CudaFusedOperations::normed_linear_rope_store_kv_impl(const RopeStoreKvParams& to,
                                                           const PendingNorm& x,
                                                           const WeightMatrix& weight) {
  const LinearPlan plan = rotating_plan(operations_.linear_plan(x.values, weight),
                                        {x.values.dim(0), weight.out_features, weight.in_features},
                                        device_.gpu().num_multiprocessors);
  const bool is_plain = to.qk_norm_kind == QkNorm::kNone && to.query_scaling == QueryScalingSpec{};
  if (!is_plain || to.pages.is_fp8() || !fuses_rope(plan, to.pages.head_dim())) {
    const bool product_adds_bias = plan.kernel == LinearKernel::kGemv;
    if (weight.bias.empty() || product_adds_bias || !rope_adds_bias(to)) {
      return FusedOperations::normed_linear_rope_store_kv_impl(to, x, weight);
    }
    // Instead of a kernel of its own: nothing else reads qkv between the product and RoPE.
    WeightMatrix product = weight;
    product.bias = {};
    normed_linear_impl(to.qkv, x, product);
    return launch_rope_store_kv(to, weight.bias, device_.stream());
  }
  launch_skinny({.out = to.query,
                 .x = x.values,
                 .weight = weight.data,
                 .x_squares = deferred_squares(x),
                 .epsilon = x.epsilon,
                 .rope = {.pages = to.pages,
                          .positions = to.positions,
                          .kv_slots = to.kv_slots,
                          .rope_table = to.rope_table,
                          .bias = weight.bias}},
                plan.skinny);
}

}  // namespace tessera
