#include "kernels/fused_operations.h"

#include "kernels/argument_check.h"
#include "kernels/device.h"

namespace tessera {
namespace {

ArgumentCheck check_of(std::string_view operation, const FusedOperations& fused) {
  const Operations& operations = fused.operations();
  return {operation, operations.device().id(), operations.activation_dtype()};
}

void check_norm(const ArgumentCheck& check, const PendingNorm& norm, DType activation) {
  check.rank("norm", norm.values, 2);
  check("norm", norm.values, activation, norm.values.shape);
  check("squares", norm.squares, DType::kFloat32,
        {norm.values.dim(0), PendingNorm::num_squares(norm.values.dim(1))});
}

void check_norm_weight(const ArgumentCheck& check, std::string_view name, const Tensor& weight,
                       int64_t hidden_size) {
  if (weight.shape.rank() > 0) check(name, weight, DType::kFloat32, {hidden_size});
}

}  // namespace

void FusedOperations::begin_norm(const PendingNorm& out, const Tensor& x, const Tensor& weight) {
  const ArgumentCheck check = check_of("begin_norm", *this);
  check_norm(check, out, operations_.activation_dtype());
  check("x", x, DType::kFloat32, out.values.shape);
  check_norm_weight(check, "weight", weight, x.dim(1));
  if (x.dim(0) > 0) begin_norm_impl(out, x, weight);
}

void FusedOperations::linear_add_begin_norm(const Tensor& residual, const PendingNorm& next,
                                            const Tensor& x, const WeightMatrix& weight,
                                            const Tensor& norm_weight, float multiplier) {
  const ArgumentCheck check = check_of("linear_add_begin_norm", *this);
  check.product("residual", residual, x, weight);
  check("residual", residual, DType::kFloat32, residual.shape);
  check_norm(check, next, operations_.activation_dtype());
  check.shape("norm", next.values, residual.shape);
  check_norm_weight(check, "norm_weight", norm_weight, residual.dim(1));
  if (x.dim(0) > 0) {
    linear_add_begin_norm_impl(residual, next, x, weight, norm_weight, multiplier);
  }
}

void FusedOperations::rms_norm_add_begin_norm(const Tensor& residual, const PendingNorm& next,
                                              const Tensor& x, const Tensor& weight,
                                              const Tensor& norm_weight, float multiplier) {
  const ArgumentCheck check = check_of("rms_norm_add_begin_norm", *this);
  check_norm(check, next, operations_.activation_dtype());
  check("residual", residual, DType::kFloat32, next.values.shape);
  check("x", x, DType::kFloat32, residual.shape);
  check("weight", weight, DType::kFloat32, {residual.dim(1)});
  check_norm_weight(check, "norm_weight", norm_weight, residual.dim(1));
  if (x.dim(0) > 0) {
    rms_norm_add_begin_norm_impl(residual, next, x, weight, norm_weight, multiplier);
  }
}

void FusedOperations::normed_linear(const Tensor& out, const PendingNorm& x,
                                    const WeightMatrix& weight) {
  const ArgumentCheck check = check_of("normed_linear", *this);
  const DType activation = operations_.activation_dtype();
  check_norm(check, x, activation);
  check.product("out", out, x.values, weight);
  check("out", out, activation, out.shape);
  if (out.dim(0) > 0) normed_linear_impl(out, x, weight);
}

void FusedOperations::normed_linear_activate_mul(const Tensor& out, const PendingNorm& x,
                                                 const WeightMatrix& weight, const Tensor& gate_up,
                                                 Activation activation) {
  const ArgumentCheck check = check_of("normed_linear_activate_mul", *this);
  const DType dtype = operations_.activation_dtype();
  check_norm(check, x, dtype);
  check.product("gate_up", gate_up, x.values, weight);
  check("gate_up", gate_up, dtype, gate_up.shape);
  CHECK(weight.out_features % 2 == 0, "normed_linear_activate_mul: weight has ",
        weight.out_features, " rows, expected an even number");
  check("out", out, dtype, {gate_up.dim(0), weight.out_features / 2});
  if (out.dim(0) > 0) normed_linear_activate_mul_impl(out, x, weight, gate_up, activation);
}

void FusedOperations::normed_linear_rope_store_kv(const RopeStoreKvParams& to, const PendingNorm& x,
                                                  const WeightMatrix& weight) {
  const ArgumentCheck check = check_of("normed_linear_rope_store_kv", *this);
  check_norm(check, x, operations_.activation_dtype());
  check.product("qkv", to.qkv, x.values, weight);
  check.rope(to);
  if (to.query.dim(0) > 0) normed_linear_rope_store_kv_impl(to, x, weight);
}

void FusedOperations::begin_norm_impl(const PendingNorm& out, const Tensor& x,
                                      const Tensor& weight) {
  if (weight.empty()) return operations_.cast(out.values, x);
  operations_.norm(out.kind, out.values, x, weight, out.epsilon);
}

void FusedOperations::linear_add_begin_norm_impl(const Tensor& residual, const PendingNorm& next,
                                                 const Tensor& x, const WeightMatrix& weight,
                                                 const Tensor& norm_weight, float multiplier) {
  operations_.linear_add(residual, x, weight, multiplier);
  begin_norm_impl(next, residual, norm_weight);
}

void FusedOperations::rms_norm_add_begin_norm_impl(const Tensor& residual, const PendingNorm& next,
                                                   const Tensor& x, const Tensor& weight,
                                                   const Tensor& norm_weight, float multiplier) {
  operations_.rms_norm_add(residual, x, weight, next.epsilon, multiplier);
  begin_norm_impl(next, residual, norm_weight);
}

void FusedOperations::normed_linear_impl(const Tensor& out, const PendingNorm& x,
                                         const WeightMatrix& weight) {
  operations_.linear(out, x.values, weight);
}

void FusedOperations::normed_linear_activate_mul_impl(const Tensor& out, const PendingNorm& x,
                                                      const WeightMatrix& weight,
                                                      const Tensor& gate_up,
                                                      Activation activation) {
  normed_linear_impl(gate_up, x, weight);
  operations_.activate_mul(out, gate_up, activation);
}

void FusedOperations::normed_linear_rope_store_kv_impl(const RopeStoreKvParams& to,
                                                       const PendingNorm& x,
                                                       const WeightMatrix& weight) {
  normed_linear_impl(to.qkv, x, weight);
  operations_.rope_store_kv(to);
}

}  // namespace tessera
