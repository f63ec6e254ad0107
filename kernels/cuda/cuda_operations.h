// The operations on a GPU: each chooses its kernels and launches them.
#pragma once

#include "kernels/cuda/attention/decode/plan.h"
#include "kernels/cuda/attention/prefill/sm90.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/linear/cublas.h"
#include "kernels/cuda/linear/plan.h"
#include "kernels/operations.h"

namespace tessera {

class CudaOperations final : public Operations {
 public:
  // compute_dtype: kBFloat16 or kFloat16, of activations, weights and KV pages.
  CudaOperations(CudaDevice& device, DType compute_dtype);

  DType activation_dtype() const override { return compute_dtype_; }
  DType weight_dtype(DType /*stored*/) const override { return compute_dtype_; }
  std::string attention_description(const BackendLimits& limits) const override;
  size_t attention_workspace_bytes(const BackendLimits& limits) const override;

  // Which kernel multiplies x [num_tokens, in_features] with `weight`. Throws Error where none can.
  LinearPlan linear_plan(const Tensor& x, const WeightMatrix& weight) const;

  // CublasLinear::run_in_parts, of a weight without a bias
  Tensor linear_in_parts(const Tensor& x, const WeightMatrix& weight, int num_parts);

 private:
  void embed_impl(const Tensor& out, const WeightMatrix& table, const Tensor& token_ids,
                  float multiplier) override;
  void take_ids_impl(const Tensor& ids, const Tensor& from, const Tensor& drawn) override;
  void rms_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                     float epsilon) override;
  void layer_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                       float epsilon) override;
  void rms_norm_add_impl(const Tensor& residual, const Tensor& x, const Tensor& weight,
                         float epsilon, float multiplier) override;
  void cast_impl(const Tensor& out, const Tensor& x) override;
  void linear_impl(const Tensor& out, const Tensor& x, const WeightMatrix& weight, bool accumulate,
                   float multiplier) override;
  void rope_store_kv_impl(const RopeStoreKvParams& params) override;
  void attention_impl(const Tensor& out, const AttentionParams& params) override;
  void activate_mul_impl(const Tensor& out, const Tensor& gate_up, Activation activation) override;
  void gather_rows_impl(const Tensor& out, const Tensor& x, const Tensor& rows) override;
  void softcap_impl(const Tensor& logits, float cap) override;
  void penalize_impl(const Tensor& logits, const PenaltyBatch& penalties) override;
  void restore_penalized_impl(const Tensor& logits, const PenaltyBatch& penalties) override;
  void sample_impl(const Tensor& tokens, const Tensor& logits,
                   const SamplingBatch& sampling) override;
  void logprobs_impl(const Tensor& logits, const LogprobBatch& batch) override;

  // left_out: multiprocessors that do not take part (attention/mixed_step.h).
  void decode_attention(const Tensor& out, const AttentionParams& params, int left_out);
  void prefill_attention(const Tensor& out, const AttentionParams& params, PrefillStart start);
  // Over pages in the type of queries.
  void prefill_16bit(const Tensor& out, const AttentionParams& params, PrefillStart start);
  // What `params` say about heads and pages.
  static BackendLimits limits_of(const AttentionParams& params);
  // Of attention's workspace, what decodes leave for each other.
  size_t decode_partial_bytes(const BackendLimits& limits) const;
  // Uses what `limits` says about heads and pages.
  DecodeAttentionShape decode_shape(const BackendLimits& limits, int64_t page_size,
                                    int64_t max_query_length) const;
  const GpuTraits& gpu() const { return device_.gpu(); }
  cudaStream_t stream() const { return device_.stream(); }

  CudaDevice& device_;
  DType compute_dtype_;
  CublasLinear cublas_;
  Buffer prefill_schedule_ = allocate_device_memory(2 * sizeof(int32_t), "scheduling attention");
  Buffer decode_arrivals_;
};

}  // namespace tessera
