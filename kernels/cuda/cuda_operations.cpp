#include "kernels/cuda/cuda_operations.h"

#include <algorithm>

#include "kernels/backend_limits.h"
#include "kernels/cuda/attention/decode/kernel.h"
#include "kernels/cuda/attention/decode/kernel_shared.h"
#include "kernels/cuda/attention/decode/shared_prefix.h"
#include "kernels/cuda/attention/mixed_step.h"
#include "kernels/cuda/attention/prefill/plan.h"
#include "kernels/cuda/attention/prefill/sm80.h"
#include "kernels/cuda/attention/prefill_fp8/kernel.h"
#include "kernels/cuda/attention/widened/plan.h"
#include "kernels/cuda/attention/widened/prefill.h"
#include "kernels/cuda/cuda_sizes.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/linear/gemv.h"
#include "kernels/cuda/linear/skinny/kernel.h"
#include "kernels/cuda/rows/activate_mul.h"
#include "kernels/cuda/rows/add_bias.h"
#include "kernels/cuda/rows/elementwise.h"
#include "kernels/cuda/rows/gather_rows.h"
#include "kernels/cuda/rows/layer_norm.h"
#include "kernels/cuda/rows/qk_norm.h"
#include "kernels/cuda/rows/rms_norm.h"
#include "kernels/cuda/rows/rms_norm_add.h"
#include "kernels/cuda/rows/rope_store_kv.h"
#include "kernels/cuda/rows/take_ids.h"
#include "kernels/cuda/sampling/logprobs.h"
#include "kernels/cuda/sampling/penalize.h"
#include "kernels/cuda/sampling/sampling.h"

namespace tessera {

CudaOperations::CudaOperations(CudaDevice& device, DType compute_dtype)
    : Operations(device),
      device_(device),
      compute_dtype_(compute_dtype),
      cublas_(device.gpu().is_batch_invariant()),
      decode_arrivals_(allocate_device_memory(
          static_cast<size_t>(gpu().num_multiprocessors) * sizeof(uint32_t), "merging attention")) {
  for (const Buffer* counters : {&prefill_schedule_, &decode_arrivals_}) {
    CUDA_CHECK(cudaMemsetAsync(counters->data(), 0, counters->size_bytes(), stream()));
  }
}

std::string CudaOperations::attention_description(const BackendLimits& limits) const {
  const std::string decode =
      describe(plan_decode_attention(decode_shape(limits, kDecodeTileTokens, 1)));
  if (gpu().is_batch_invariant()) return concat("prefill and decode by ", decode);
  const char* const problem = fp8_prefill_problem(gpu(), limits.head_dim, limits.kv_dtype);
  if (problem == nullptr) {
    return concat("prefill in float8_e4m3 where a layer sees all earlier tokens, decode by ",
                  decode);
  }
  return concat(
      limits.kv_dtype == KvDType::kFloat8E4M3 ? "prefill over widened pages by " : "prefill by ",
      describe(plan_prefill_attention(gpu(), limits.head_dim, false)),
      gpu().choice == KernelChoice::kFp8Attention ? concat(" (not in float8_e4m3: ", problem, ")")
                                                  : "",
      ", decode by ", decode);
}

size_t CudaOperations::attention_workspace_bytes(const BackendLimits& limits) const {
  const size_t partials = decode_partial_bytes(limits);
  if (has_shared_prefix_kernels(gpu(), limits.head_dim, limits.kv_dtype)) {
    return partials + sizeof(float) * static_cast<size_t>(shared_prefix_elements(
                                          limits.max_sequences, limits.num_heads, limits.head_dim));
  }
  if (limits.kv_dtype == KvDType::kActivation || gpu().is_batch_invariant()) return partials;
  // A layer that FP8 attention declines is widened.
  int64_t scratch = widening_scratch(limits).total();
  if (fp8_prefill_problem(gpu(), limits.head_dim, limits.kv_dtype) == nullptr) {
    scratch = std::max(scratch, fp8_prefill_scratch(limits).total());
  }
  return partials + static_cast<size_t>(scratch);
}

size_t CudaOperations::decode_partial_bytes(const BackendLimits& limits) const {
  const auto elements = static_cast<size_t>(
      decode_partial_elements(decode_shape(limits, kDecodeTileTokens, kMaxDecodeQueryLength)));
  if (limits.kv_dtype == KvDType::kActivation) return sizeof(float) * elements;
  // What pages are widened to comes behind.
  return checked_round_up(sizeof(float) * elements, size_t{256}, "attention workspace");
}

DecodeAttentionShape CudaOperations::decode_shape(const BackendLimits& limits, int64_t page_size,
                                                  int64_t max_query_length) const {
  return {.num_heads = limits.num_heads,
          .num_kv_heads = limits.num_kv_heads,
          .head_dim = limits.head_dim,
          .page_size = page_size,
          .max_query_length = max_query_length,
          .is_fp8 = limits.kv_dtype == KvDType::kFloat8E4M3,
          .gpu = gpu()};
}

void CudaOperations::embed_impl(const Tensor& out, const WeightMatrix& table,
                                const Tensor& token_ids, float multiplier) {
  launch_gather_rows(out, table.data, token_ids, multiplier, stream());
}

void CudaOperations::take_ids_impl(const Tensor& ids, const Tensor& from, const Tensor& drawn) {
  launch_take_ids(ids, from, drawn, stream());
}

void CudaOperations::rms_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                                   float epsilon) {
  launch_rms_norm(out, x, weight, epsilon, stream());
}

void CudaOperations::layer_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                                     float epsilon) {
  launch_layer_norm(out, x, weight, epsilon, stream());
}

void CudaOperations::rms_norm_add_impl(const Tensor& residual, const Tensor& x,
                                       const Tensor& weight, float epsilon, float multiplier) {
  launch_rms_norm_add(residual, x, weight, epsilon, multiplier, {}, stream());
}

void CudaOperations::cast_impl(const Tensor& out, const Tensor& x) {
  launch_cast(out, x, stream());
}

LinearPlan CudaOperations::linear_plan(const Tensor& x, const WeightMatrix& weight) const {
  CHECK(weight.data.dtype == compute_dtype_, "linear: weight is ", to_string(weight.data.dtype),
        ", expected ", to_string(compute_dtype_));
  CHECK(weight.in_features % kFeatureMultiple == 0, "linear: in_features is ", weight.in_features,
        ", CUDA needs a multiple of ", kFeatureMultiple);
  return plan_linear({.num_tokens = x.dim(0),
                      .out_features = weight.out_features,
                      .in_features = weight.in_features},
                     gpu());
}

void CudaOperations::linear_impl(const Tensor& out, const Tensor& x, const WeightMatrix& weight,
                                 bool accumulate, float multiplier) {
  const LinearPlan plan = linear_plan(x, weight);
  switch (plan.kernel) {
    case LinearKernel::kGemv:
      return launch_linear_gemv(out, x, weight, accumulate, multiplier, stream());
    case LinearKernel::kSkinny:
      launch_linear_skinny_sm90({.out = out,
                                 .x = x,
                                 .weight = weight.data,
                                 .accumulate = accumulate,
                                 .multiplier = multiplier},
                                plan.skinny, gpu().num_multiprocessors, stream());
      break;
    case LinearKernel::kCublas:
      cublas_.run(out, x, weight.data, accumulate, multiplier, stream());
      break;
  }
  if (!weight.bias.empty()) launch_add_bias(out, weight.bias, multiplier, stream());
}

Tensor CudaOperations::linear_in_parts(const Tensor& x, const WeightMatrix& weight, int num_parts) {
  CHECK(weight.bias.empty(), "a bias would be added in every part");
  return cublas_.run_in_parts(x, weight.data, num_parts, stream());
}

void CudaOperations::rope_store_kv_impl(const RopeStoreKvParams& params) {
  if (params.qk_norm_kind != QkNorm::kNone && !rope_normalizes(params)) {
    launch_qk_norm(params, stream());
  }
  launch_rope_store_kv(params, {}, stream());
}

void CudaOperations::attention_impl(const Tensor& out, const AttentionParams& params) {
  if (gpu().is_batch_invariant()) {
    // A token is computed by the same kernel whether it is a prompt's or an answer's.
    AttentionParams all = params;
    all.batch.num_decodes = all.batch.num_sequences;
    return decode_attention(out, all, 0);
  }
  // Nothing that Operations lists under "Early reads" is the result of a kernel.
  PrefillStart start = PrefillStart::kWhilePrevious;
  if (params.batch.num_decodes > 0) {
    const int for_prefill = prefill_multiprocessors(params, gpu());
    decode_attention(out, params, for_prefill);
    if (for_prefill > 0) start = PrefillStart::kBesideDecodes;
  }
  if (params.batch.num_decodes < params.batch.num_sequences) {
    prefill_attention(out, params, start);
  }
}

BackendLimits CudaOperations::limits_of(const AttentionParams& params) {
  const KvPages& pages = params.pages;
  return {.num_heads = params.query.dim(1),
          .num_kv_heads = pages.num_kv_heads(),
          .head_dim = pages.head_dim(),
          .kv_dtype = pages.is_fp8() ? KvDType::kFloat8E4M3 : KvDType::kActivation};
}

void CudaOperations::prefill_attention(const Tensor& out, const AttentionParams& params,
                                       PrefillStart start) {
  if (params.pages.is_fp8()) {
    const auto partials = static_cast<int64_t>(decode_partial_bytes(limits_of(params)));
    const int64_t offset = partials / static_cast<int64_t>(sizeof(float));
    CHECK(params.workspace.num_elements() >= offset, "attention: workspace ",
          params.workspace.shape, " is too small");
    const Tensor scratch = params.workspace.slice(offset, params.workspace.dim(0));
    if (fp8_prefill_problem(gpu(), params.pages.head_dim(), KvDType::kFloat8E4M3) == nullptr &&
        fp8_layer_problem(params) == nullptr) {
      return launch_attention_prefill_fp8(out, params, scratch,
                                          static_cast<int32_t*>(prefill_schedule_.data()),
                                          gpu().num_multiprocessors, stream());
    }
    return launch_widened_prefill(
        out, params, scratch,
        [&](const Tensor& part_out, const AttentionParams& part) {
          // Block tables are a kernel's.
          prefill_16bit(part_out, part, PrefillStart::kAfterPrevious);
        },
        stream());
  }
  prefill_16bit(out, params, start);
}

void CudaOperations::prefill_16bit(const Tensor& out, const AttentionParams& params,
                                   PrefillStart start) {
  const PrefillPlan plan =
      plan_prefill_attention(gpu(), params.pages.head_dim(), params.softcap > 0.0f);
  switch (plan.kernel) {
    case PrefillKernel::kPortable:
      return launch_attention_prefill_sm80(out, params, stream());
    case PrefillKernel::kHopper:
      return launch_attention_prefill_sm90(out, params,
                                           static_cast<int32_t*>(prefill_schedule_.data()),
                                           gpu().num_multiprocessors, start, stream());
  }
}

void CudaOperations::decode_attention(const Tensor& out, const AttentionParams& params,
                                      int left_out) {
  const DecodeAttentionShape shape = decode_shape(limits_of(params), params.pages.page_size(),
                                                  params.batch.max_decode_query_length);
  const int64_t needed = decode_partial_elements(shape);
  CHECK(!params.workspace.empty() && params.workspace.num_elements() >= needed,
        "attention: workspace ", params.workspace.shape, " is too small, expected ", needed,
        " float32 elements");
  auto* const arrivals = static_cast<uint32_t*>(decode_arrivals_.data());
  DecodeAttentionPlan plan = plan_decode_attention(shape);
  plan.num_blocks -= left_out;
  if (!reads_shared_prefixes(gpu(), params)) {
    return launch_attention_decode(out, params, plan, arrivals, stream());
  }
  // The queries of a group are taken as many at a time as a sequence's may be.
  DecodeAttentionShape of_groups = shape;
  of_groups.max_query_length = kMaxDecodeQueryLength;
  const int64_t partials = decode_partial_elements(of_groups);
  CHECK(params.workspace.num_elements() >= partials, "attention: workspace ",
        params.workspace.shape, " is too small for shared prefixes");
  launch_attention_decode_shared(out, params, plan_decode_attention(of_groups), plan,
                                 params.workspace.slice(partials, params.workspace.dim(0)),
                                 arrivals, stream());
}

void CudaOperations::activate_mul_impl(const Tensor& out, const Tensor& gate_up,
                                       Activation activation) {
  launch_activate_mul(out, gate_up, activation, stream());
}

void CudaOperations::gather_rows_impl(const Tensor& out, const Tensor& x, const Tensor& rows) {
  launch_gather_rows(out, x, rows, 1.0f, stream());
}

void CudaOperations::softcap_impl(const Tensor& logits, float cap) {
  launch_softcap(logits, cap, stream());
}

void CudaOperations::penalize_impl(const Tensor& logits, const PenaltyBatch& penalties) {
  launch_penalize(logits, penalties, stream());
}

void CudaOperations::restore_penalized_impl(const Tensor& logits, const PenaltyBatch& penalties) {
  launch_restore_penalized(logits, penalties, stream());
}

void CudaOperations::sample_impl(const Tensor& tokens, const Tensor& logits,
                                 const SamplingBatch& sampling) {
  launch_sample(tokens, logits, sampling, gpu().runs_hopper(), stream());
}

void CudaOperations::logprobs_impl(const Tensor& logits, const LogprobBatch& batch) {
  launch_logprobs(logits, batch, stream());
}

}  // namespace tessera
