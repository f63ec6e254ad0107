#include "kernels/cpu/cpu_operations.h"

#include "kernels/backend_limits.h"
#include "kernels/cpu/activate_mul.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/copy_tensor.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/layer_norm.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/logprobs.h"
#include "kernels/cpu/penalize.h"
#include "kernels/cpu/rms_norm.h"
#include "kernels/cpu/rope_store_kv.h"
#include "kernels/cpu/sampling.h"
#include "kernels/cpu/softcap.h"

namespace tessera {

std::string CpuOperations::attention_description(const BackendLimits& /*limits*/) const {
  return concat(
      "blocks of ", kBlockRows, " query rows over tiles of ", kTileKeys,
      " keys, one thread each; decodes ",
      is_batch_invariant_ ? "in the same way" : concat("in parts of ", kPartKeys, " keys"));
}

size_t CpuOperations::attention_workspace_bytes(const BackendLimits& limits) const {
  return tessera::attention_workspace_bytes(limits);
}

void CpuOperations::embed_impl(const Tensor& out, const WeightMatrix& table,
                               const Tensor& token_ids, float multiplier) {
  tessera::gather_rows(out, table.data, token_ids, multiplier, pool_);
}

void CpuOperations::take_ids_impl(const Tensor& ids, const Tensor& from, const Tensor& drawn) {
  tessera::take_ids(ids, from, drawn);
}

void CpuOperations::rms_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                                  float epsilon) {
  tessera::rms_norm(out, x, weight, epsilon, pool_);
}

void CpuOperations::layer_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                                    float epsilon) {
  tessera::layer_norm(out, x, weight, epsilon, pool_);
}

void CpuOperations::rms_norm_add_impl(const Tensor& residual, const Tensor& x, const Tensor& weight,
                                      float epsilon, float multiplier) {
  tessera::rms_norm_add(residual, x, weight, epsilon, multiplier, pool_);
}

// The activation type is that of x.
void CpuOperations::cast_impl(const Tensor& out, const Tensor& x) { copy_tensor(out, x, pool_); }

void CpuOperations::linear_impl(const Tensor& out, const Tensor& x, const WeightMatrix& weight,
                                bool accumulate, float multiplier) {
  const LinearEpilogue epilogue{.bias = weight.bias.empty() ? nullptr : weight.bias.as<float>(),
                                .accumulate = accumulate,
                                .multiplier = multiplier};
  tessera::linear(out, x, weight.data, epilogue, is_batch_invariant_, split_linear_, scratch_,
                  pool_);
}

void CpuOperations::rope_store_kv_impl(const RopeStoreKvParams& params) {
  tessera::rope_store_kv(params, rotation_table_, pool_);
}

void CpuOperations::attention_impl(const Tensor& out, const AttentionParams& params) {
  tessera::attention(out, params, is_batch_invariant_, scratch_, pool_);
}

void CpuOperations::activate_mul_impl(const Tensor& out, const Tensor& gate_up,
                                      Activation activation) {
  tessera::activate_mul(out, gate_up, activation, pool_);
}

void CpuOperations::gather_rows_impl(const Tensor& out, const Tensor& x, const Tensor& rows) {
  tessera::gather_rows(out, x, rows, 1.0f, pool_);
}

void CpuOperations::softcap_impl(const Tensor& logits, float cap) {
  tessera::softcap(logits, cap, pool_);
}

void CpuOperations::penalize_impl(const Tensor& logits, const PenaltyBatch& penalties) {
  tessera::penalize(logits, penalties, pool_);
}

void CpuOperations::restore_penalized_impl(const Tensor& logits, const PenaltyBatch& penalties) {
  tessera::restore_penalized(logits, penalties, pool_);
}

void CpuOperations::sample_impl(const Tensor& tokens, const Tensor& logits,
                                const SamplingBatch& sampling) {
  tessera::sample(tokens, logits, sampling, scratch_, pool_);
}

void CpuOperations::logprobs_impl(const Tensor& logits, const LogprobBatch& batch) {
  tessera::logprobs(logits, batch, pool_);
}

}  // namespace tessera
