#include "kernels/cuda/cuda_fused_operations.h"

#include "kernels/cuda/rows/rms_norm.h"

namespace tessera {

static_assert(PendingNorm::kSquaresFeatures == kSquaresFeatures);

namespace {

// fused_products_block_problem() lets no block through that has what these products leave out. The
// checks say so where somebody forgets to ask it.
void check_left_out(bool is_absent, std::string_view name) {
  CHECK(is_absent, "the fused products leave out ", name);
}

// What the skinny product multiplies with.
const Tensor& dense_data(const WeightMatrix& weight) {
  check_left_out(weight.bias.empty(), "biases");
  return weight.data;
}

void check_is_rms_norm(const PendingNorm& norm, const Tensor& weight) {
  check_left_out(norm.kind == NormKind::kRmsNorm && !weight.empty(), "other norms than RMSNorm");
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
    return FusedOperations::linear_add_begin_norm_impl(residual, next, x, weight, norm_weight,
                                                       multiplier);
  }
  check_is_rms_norm(next, norm_weight);
  check_left_out(multiplier == 1.0f, "multipliers of the residual stream");
  launch_skinny({.out = residual,
                 .x = x,
                 .weight = dense_data(weight),
                 .accumulate = true,
                 .norm = {.values = next.values, .squares = next.squares, .weight = norm_weight}},
                operations_.linear_plan(x, weight).skinny);
}

void CudaFusedOperations::normed_linear_impl(const Tensor& out, const PendingNorm& x,
                                             const WeightMatrix& weight) {
  if (!defers_scale(x)) return FusedOperations::normed_linear_impl(out, x, weight);
  launch_skinny({.out = out,
                 .x = x.values,
                 .weight = dense_data(weight),
                 .x_squares = x.squares,
                 .epsilon = x.epsilon},
                operations_.linear_plan(x.values, weight).skinny);
}

void CudaFusedOperations::normed_linear_activate_mul_impl(const Tensor& out, const PendingNorm& x,
                                                          const WeightMatrix& weight,
                                                          const Tensor& gate_up,
                                                          Activation activation) {
  if (operations_.linear_plan(x.values, weight).kernel != LinearKernel::kSkinny) {
    return FusedOperations::normed_linear_activate_mul_impl(out, x, weight, gate_up, activation);
  }
  check_left_out(activation == Activation::kSilu, "other activations than SiLU");
  launch_skinny({.out = out,
                 .x = x.values,
                 .weight = dense_data(weight),
                 .is_gated = true,
                 .x_squares = deferred_squares(x),
                 .epsilon = x.epsilon},
                plan_gated_skinny(out.dim(0), out.dim(1), device_.gpu().num_multiprocessors));
}

void CudaFusedOperations::normed_linear_rope_store_kv_impl(const RopeStoreKvParams& to,
                                                           const PendingNorm& x,
                                                           const WeightMatrix& weight) {
  const LinearPlan plan = operations_.linear_plan(x.values, weight);
  if (!fuses_rope(plan, to.pages.head_dim())) {
    return FusedOperations::normed_linear_rope_store_kv_impl(to, x, weight);
  }
  check_left_out(to.qk_norm.empty(), "norms of queries and keys");
  check_left_out(to.query_scaling.beta == 0.0, "factors of queries by position");
  launch_skinny({.out = to.query,
                 .x = x.values,
                 .weight = dense_data(weight),
                 .x_squares = deferred_squares(x),
                 .epsilon = x.epsilon,
                 .rope = {.pages = to.pages,
                          .positions = to.positions,
                          .kv_slots = to.kv_slots,
                          .rope_table = to.rope_table}},
                plan.skinny);
}

}  // namespace tessera
