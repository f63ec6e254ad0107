#include "kernels/operations.h"

#include "kernels/argument_check.h"
#include "kernels/device.h"

namespace tessera {
namespace {

ArgumentCheck check_of(std::string_view operation, const Operations& operations) {
  return {operation, operations.device().id(), operations.activation_dtype()};
}

void check_norm(const ArgumentCheck& check, const Tensor& out, DType out_dtype, const Tensor& x,
                const Tensor& weight) {
  check.rank("x", x, 2);
  check("x", x, DType::kFloat32, x.shape);
  check("out", out, out_dtype, x.shape);
  check("weight", weight, DType::kFloat32, {x.dim(1)});
}

void check_penalties(const ArgumentCheck& check, const Tensor& logits,
                     const PenaltyBatch& penalties) {
  check.rank("logits", logits, 2);
  check.rank("tokens", penalties.tokens, 1);
  const int64_t num_sequences = logits.dim(0);
  check("logits", logits, DType::kFloat32, logits.shape);
  check("offsets", penalties.offsets, DType::kInt32, {num_sequences + 1});
  check("tokens", penalties.tokens, DType::kInt32, penalties.tokens.shape);
  check("counts", penalties.counts, DType::kInt32, penalties.tokens.shape);
  check("repetition", penalties.repetition, DType::kFloat32, {num_sequences});
  check("frequency", penalties.frequency, DType::kFloat32, {num_sequences});
  check("presence", penalties.presence, DType::kFloat32, {num_sequences});
  if (penalties.before.shape.rank() > 0) {
    check("before", penalties.before, DType::kFloat32, penalties.tokens.shape);
  }
}

}  // namespace

void Operations::embed(const Tensor& out, const WeightMatrix& table, const Tensor& token_ids,
                       float multiplier) {
  const ArgumentCheck check = check_of("embed", *this);
  check.rank("token_ids", token_ids, 1);
  check.matrix("table", table);
  check("token_ids", token_ids, DType::kInt32, token_ids.shape);
  check("out", out, DType::kFloat32, {token_ids.dim(0), table.in_features});
  if (token_ids.dim(0) > 0) embed_impl(out, table, token_ids, multiplier);
}

void Operations::take_ids(const Tensor& ids, const Tensor& from, const Tensor& drawn) {
  const ArgumentCheck check = check_of("take_ids", *this);
  check.rank("ids", ids, 1);
  check.rank("drawn", drawn, 1);
  check("ids", ids, DType::kInt32, ids.shape);
  check("from", from, DType::kInt32, ids.shape);
  check("drawn", drawn, DType::kInt32, drawn.shape);
  if (ids.dim(0) > 0) take_ids_impl(ids, from, drawn);
}

void Operations::rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon) {
  check_norm(check_of("rms_norm", *this), out, activation_dtype(), x, weight);
  if (x.dim(0) > 0) rms_norm_impl(out, x, weight, epsilon);
}

void Operations::layer_norm(const Tensor& out, const Tensor& x, const Tensor& weight,
                            float epsilon) {
  check_norm(check_of("layer_norm", *this), out, activation_dtype(), x, weight);
  if (x.dim(0) > 0) layer_norm_impl(out, x, weight, epsilon);
}

void Operations::norm(NormKind kind, const Tensor& out, const Tensor& x, const Tensor& weight,
                      float epsilon) {
  if (kind == NormKind::kLayerNorm) return layer_norm(out, x, weight, epsilon);
  rms_norm(out, x, weight, epsilon);
}

void Operations::rms_norm_add(const Tensor& residual, const Tensor& x, const Tensor& weight,
                              float epsilon, float multiplier) {
  check_norm(check_of("rms_norm_add", *this), residual, DType::kFloat32, x, weight);
  if (x.dim(0) > 0) rms_norm_add_impl(residual, x, weight, epsilon, multiplier);
}

void Operations::cast(const Tensor& out, const Tensor& x) {
  const ArgumentCheck check = check_of("cast", *this);
  check.rank("x", x, 2);
  check("x", x, DType::kFloat32, x.shape);
  check("out", out, activation_dtype(), x.shape);
  if (x.num_elements() > 0) cast_impl(out, x);
}

void Operations::linear(const Tensor& out, const Tensor& x, const WeightMatrix& weight) {
  const ArgumentCheck check = check_of("linear", *this);
  check.product("out", out, x, weight);
  CHECK(out.dtype == activation_dtype() || out.dtype == DType::kFloat32, "linear: out is ",
        to_string(out.dtype), ", expected ", to_string(activation_dtype()), " or float32");
  if (x.dim(0) > 0) linear_impl(out, x, weight, false, 1.0f);
}

void Operations::linear_add(const Tensor& residual, const Tensor& x, const WeightMatrix& weight,
                            float multiplier) {
  const ArgumentCheck check = check_of("linear_add", *this);
  check.product("residual", residual, x, weight);
  check("residual", residual, DType::kFloat32, residual.shape);
  if (x.dim(0) > 0) linear_impl(residual, x, weight, true, multiplier);
}

void Operations::rope_store_kv(const RopeStoreKvParams& params) {
  check_of("rope_store_kv", *this).rope(params);
  if (params.query.dim(0) > 0) rope_store_kv_impl(params);
}

void Operations::attention(const Tensor& out, const AttentionParams& params) {
  const ArgumentCheck check = check_of("attention", *this);
  const AttentionBatch& batch = params.batch;
  check.pages(params.pages);
  check.rank("query", params.query, 3);
  check("query", params.query, activation_dtype(),
        {params.query.dim(0), params.query.dim(1), params.pages.head_dim()});
  check("out", out, activation_dtype(), params.query.shape);
  check("query_starts", batch.query_starts, DType::kInt32, {batch.num_sequences + 1});
  check("context_lengths", batch.context_lengths, DType::kInt32, {batch.num_sequences});
  check.rank("block_tables", batch.block_tables, 2);
  check("block_tables", batch.block_tables, DType::kInt32,
        {batch.num_sequences, batch.block_tables.dim(1)});
  CHECK(params.query.dim(1) % params.pages.num_kv_heads() == 0, "attention: ", params.query.dim(1),
        " query heads are not a multiple of ", params.pages.num_kv_heads(), " KV heads");
  CHECK(batch.num_decodes >= 0 && batch.num_decodes <= batch.num_sequences,
        "attention: ", batch.num_decodes, " decodes among ", batch.num_sequences, " sequences");
  CHECK(batch.max_context_length <= batch.block_tables.dim(1) * params.pages.page_size(),
        "attention: context of ", batch.max_context_length, " tokens, block tables hold ",
        batch.block_tables.dim(1), " pages of ", params.pages.page_size());
  CHECK(params.workspace.dtype == DType::kFloat32 && params.workspace.device == device().id(),
        "attention: the workspace is not float32 on ", to_string(device().id()));
  CHECK(params.sliding_window >= 0, "attention: sliding window of ", params.sliding_window,
        " tokens, expected a positive number, or 0 for none");
  CHECK(params.causal || params.sliding_window == 0, "attention: a sliding window of ",
        params.sliding_window, " tokens without causal");
  CHECK(params.scale > 0.0f, "attention: scale is ", params.scale, ", expected a positive number");
  CHECK(params.softcap >= 0.0f, "attention: softcap is ", params.softcap,
        ", expected a positive number, or 0 for none");
  CHECK(batch.max_decode_query_length <= kMaxDecodeQueryLength, "attention: decodes of up to ",
        batch.max_decode_query_length, " query tokens, at most ", kMaxDecodeQueryLength,
        " are possible");
  const SharedPrefixes& shared = batch.shared;
  if (shared.num_groups > 0) {
    check("group_starts", shared.group_starts, DType::kInt32, {shared.num_groups + 1});
    check("lengths", shared.lengths, DType::kInt32, {shared.num_groups});
    check("own_begins", shared.own_begins, DType::kInt32, {batch.num_decodes});
    CHECK(batch.max_decode_query_length == 1, "attention: shared prefixes of decodes of up to ",
          batch.max_decode_query_length, " query tokens, one is possible");
  }
  if (params.query.dim(0) > 0) attention_impl(out, params);
}

void Operations::activate_mul(const Tensor& out, const Tensor& gate_up, Activation activation) {
  const ArgumentCheck check = check_of("activate_mul", *this);
  check.rank("out", out, 2);
  check("out", out, activation_dtype(), out.shape);
  check("gate_up", gate_up, activation_dtype(), {out.dim(0), 2 * out.dim(1)});
  if (out.dim(0) > 0) activate_mul_impl(out, gate_up, activation);
}

void Operations::gather_rows(const Tensor& out, const Tensor& x, const Tensor& rows) {
  const ArgumentCheck check = check_of("gather_rows", *this);
  check.rank("x", x, 2);
  check.rank("rows", rows, 1);
  const DType dtype = out.dtype == DType::kFloat32 ? DType::kFloat32 : activation_dtype();
  check("x", x, dtype, x.shape);
  check("rows", rows, DType::kInt32, rows.shape);
  check("out", out, dtype, {rows.dim(0), x.dim(1)});
  if (rows.dim(0) > 0) gather_rows_impl(out, x, rows);
}

void Operations::softcap(const Tensor& logits, float cap) {
  const ArgumentCheck check = check_of("softcap", *this);
  check.rank("logits", logits, 2);
  check("logits", logits, DType::kFloat32, logits.shape);
  CHECK(cap > 0.0f, "softcap: cap is ", cap, ", expected a positive number");
  if (logits.num_elements() > 0) softcap_impl(logits, cap);
}

void Operations::penalize(const Tensor& logits, const PenaltyBatch& penalties) {
  check_penalties(check_of("penalize", *this), logits, penalties);
  if (logits.dim(0) > 0) penalize_impl(logits, penalties);
}

void Operations::restore_penalized(const Tensor& logits, const PenaltyBatch& penalties) {
  const ArgumentCheck check = check_of("restore_penalized", *this);
  check_penalties(check, logits, penalties);
  check("before", penalties.before, DType::kFloat32, penalties.tokens.shape);
  if (logits.dim(0) > 0) restore_penalized_impl(logits, penalties);
}

void Operations::sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling) {
  const ArgumentCheck check = check_of("sample", *this);
  check.rank("logits", logits, 2);
  const int64_t num_sequences = logits.dim(0);
  check("logits", logits, DType::kFloat32, logits.shape);
  check("tokens", tokens, DType::kInt32, {num_sequences});
  check("temperature", sampling.temperature, DType::kFloat32, {num_sequences});
  check("top_k", sampling.top_k, DType::kInt32, {num_sequences});
  check("top_p", sampling.top_p, DType::kFloat32, {num_sequences});
  check("min_p", sampling.min_p, DType::kFloat32, {num_sequences});
  check("random", sampling.random, DType::kInt32, {num_sequences, 2});
  CHECK(sampling.num_candidates > 0 && sampling.num_candidates <= logits.dim(1),
        "sample: ", sampling.num_candidates, " candidates of ", logits.dim(1), " logits");
  if (num_sequences > 0) sample_impl(tokens, logits, sampling);
}

void Operations::logprobs(const Tensor& logits, const LogprobBatch& batch) {
  const ArgumentCheck check = check_of("logprobs", *this);
  check.rank("logits", logits, 2);
  check.rank("top_tokens", batch.top_tokens, 2);
  const int64_t num_sequences = logits.dim(0);
  const int64_t num_top = batch.top_tokens.dim(1);
  check("logits", logits, DType::kFloat32, logits.shape);
  check("tokens", batch.tokens, DType::kInt32, {num_sequences});
  check("logprobs", batch.logprobs, DType::kFloat32, {num_sequences});
  check("top_tokens", batch.top_tokens, DType::kInt32, {num_sequences, num_top});
  check("top_logprobs", batch.top_logprobs, DType::kFloat32, {num_sequences, num_top});
  CHECK(batch.num_candidates > 0 && batch.num_candidates <= logits.dim(1),
        "logprobs: ", batch.num_candidates, " candidates of ", logits.dim(1), " logits");
  CHECK(num_top <= batch.num_candidates, "logprobs: the ", num_top, " most probable of ",
        batch.num_candidates, " candidates");
  if (num_sequences > 0) logprobs_impl(logits, batch);
}

}  // namespace tessera
