// The operations on the CPU: each has finished when its call returns.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/rotation_table.h"
#include "kernels/cpu/split_linear.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/kernel_choice.h"
#include "kernels/operations.h"

namespace tessera {

class CpuOperations final : public Operations {
 public:
  CpuOperations(CpuDevice& device, KernelChoice choice)
      : Operations(device),
        is_batch_invariant_(choice == KernelChoice::kBatchInvariant),
        pool_(device.pool()),
        scratch_(pool_.num_threads()),
        split_linear_(pool_.num_threads()) {}

  DType activation_dtype() const override { return DType::kFloat32; }
  // Decoding is bound by reading weights: widening them in memory would only make them larger.
  DType weight_dtype(DType stored) const override { return stored; }
  std::string attention_description(const BackendLimits& limits) const override;
  size_t attention_workspace_bytes(const BackendLimits& limits) const override;

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

  bool is_batch_invariant_;
  ThreadPool& pool_;
  ThreadScratch scratch_;
  SplitLinear split_linear_;
  RotationTable rotation_table_;
};

}  // namespace tessera
