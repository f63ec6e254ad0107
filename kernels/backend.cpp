#include "kernels/backend.h"

#include "kernels/fused_decoder.h"
#include "kernels/standard_attention.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// Checks one argument of an operation: present, on the device, of the dtype and shape expected.
class ArgumentCheck {
 public:
  ArgumentCheck(std::string_view operation, DeviceType device)
      : operation_(operation), device_(device) {}

  void shape(std::string_view name, const Tensor& tensor, const Shape& expected) const {
    CHECK(!tensor.empty() || expected.num_elements() == 0, operation_, ": ", name, " has no data");
    CHECK(tensor.device == device_, operation_, ": ", name, " is on ", to_string(tensor.device),
          ", expected ", to_string(device_));
    CHECK(tensor.shape == expected, operation_, ": ", name, " has shape ", tensor.shape,
          ", expected ", expected);
  }
  void operator()(std::string_view name, const Tensor& tensor, DType dtype,
                  const Shape& expected) const {
    shape(name, tensor, expected);
    CHECK(tensor.dtype == dtype, operation_, ": ", name, " is ", to_string(tensor.dtype),
          ", expected ", to_string(dtype));
  }
  void rank(std::string_view name, const Tensor& tensor, int expected) const {
    CHECK(tensor.shape.rank() == expected, operation_, ": ", name, " has shape ", tensor.shape,
          ", expected ", expected, " dimensions");
  }

  std::string_view operation() const { return operation_; }

 private:
  std::string_view operation_;
  DeviceType device_;
};

void check_pages(const ArgumentCheck& check, const KvPages& pages, DType dtype) {
  check.rank("key pages", pages.keys, 4);
  check("key pages", pages.keys, dtype, pages.keys.shape);
  check("value pages", pages.values, dtype, pages.keys.shape);
}

}  // namespace

namespace {

void check_conversion(DType from, DType to) {
  CHECK(from == to || (from != DType::kInt32 && to != DType::kInt32), "upload cannot convert ",
        to_string(from), " to ", to_string(to));
}

void check_upload(const Tensor& destination, const Tensor& source, DeviceType device) {
  CHECK(destination.device == device && source.device == DeviceType::kCpu,
        "upload goes from the host to ", to_string(device));
  CHECK(destination.shape == source.shape, "upload of shape ", source.shape, " to ",
        destination.shape);
  check_conversion(source.dtype, destination.dtype);
}

}  // namespace

void Backend::upload(const Tensor& destination, const Tensor& source) {
  check_upload(destination, source, device());
  if (source.num_elements() > 0) upload_impl(destination, source);
}

void Backend::upload_inputs(const Tensor& destination, const Tensor& source) {
  check_upload(destination, source, device());
  CHECK(source.dtype == destination.dtype && size_of(source.dtype) == sizeof(int32_t),
        "upload_inputs of ", to_string(source.dtype), " to ", to_string(destination.dtype));
  if (source.num_elements() > 0) upload_inputs_impl(destination, source);
}

void Backend::upload_parts(std::span<const UploadPart> parts, const ReadPart& read,
                           const OnPartRead& on_read) {
  for (const UploadPart& part : parts) {
    CHECK(part.destination.device == device() && !part.destination.empty(),
          "a part to upload is not on ", to_string(device()));
    CHECK(part.source_bytes() > 0 && part.source_bytes() <= kMaxUploadPartBytes,
          "a part to upload has ", part.source_bytes(), " bytes, expected 1 to ",
          kMaxUploadPartBytes);
    check_conversion(part.source_dtype, part.destination.dtype);
  }
  if (!parts.empty()) upload_parts_impl(parts, read, on_read);
}

namespace {

void check_download(const Tensor& destination, const Tensor& source, DeviceType device) {
  CHECK(source.device == device && destination.device == DeviceType::kCpu, "download goes from ",
        to_string(device), " to the host");
  CHECK(destination.shape == source.shape && destination.dtype == source.dtype, "download of ",
        to_string(source.dtype), source.shape, " to ", to_string(destination.dtype),
        destination.shape);
}

}  // namespace

void Backend::download(const Tensor& destination, const Tensor& source) {
  check_download(destination, source, device());
  if (source.num_elements() > 0) download_impl(destination, source);
}

DownloadTicket Backend::start_download(const Tensor& source) {
  CHECK(source.device == device() && !source.empty(), "start_download: the source is not on ",
        to_string(device()));
  CHECK(source.size_bytes() <= kMaxStartedDownloadBytes, "start_download of ", source.size_bytes(),
        " bytes, at most ", kMaxStartedDownloadBytes, " are possible");
  CHECK(size_of(source.dtype) == sizeof(int32_t), "start_download of ", to_string(source.dtype));
  const size_t index = next_ticket_ % kStartedDownloads;
  start_download_impl(index, source);
  started_[index] = source;
  return next_ticket_++;
}

void Backend::finish_download(const Tensor& destination, DownloadTicket ticket) {
  CHECK(ticket < next_ticket_ && next_ticket_ - ticket <= kStartedDownloads,
        "finish_download: download ", ticket, " of ", next_ticket_, " is not there");
  const size_t index = ticket % kStartedDownloads;
  check_download(destination, started_[index], device());
  finish_download_impl(index, destination);
}

void Backend::embed(const Tensor& out, const Tensor& table, const Tensor& token_ids) {
  const ArgumentCheck check("embed", device());
  check.rank("table", table, 2);
  check.rank("token_ids", token_ids, 1);
  check.shape("table", table, table.shape);
  check("token_ids", token_ids, DType::kInt32, token_ids.shape);
  check("out", out, DType::kFloat32, {token_ids.dim(0), table.dim(1)});
  if (token_ids.dim(0) > 0) embed_impl(out, table, token_ids);
}

void Backend::rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon) {
  const ArgumentCheck check("rms_norm", device());
  check.rank("x", x, 2);
  check("x", x, DType::kFloat32, x.shape);
  check("out", out, activation_dtype(), x.shape);
  check("weight", weight, DType::kFloat32, {x.dim(1)});
  if (x.dim(0) > 0) rms_norm_impl(out, x, weight, epsilon);
}

namespace {

void check_linear(const ArgumentCheck& check, std::string_view out_name, const Tensor& out,
                  const Tensor& x, const Tensor& weight, DType activation_dtype) {
  check.rank("x", x, 2);
  check.rank("weight", weight, 2);
  check("x", x, activation_dtype, x.shape);
  check.shape("weight", weight, {weight.dim(0), x.dim(1)});
  check.shape(out_name, out, {x.dim(0), weight.dim(0)});
}

}  // namespace

void Backend::linear(const Tensor& out, const Tensor& x, const Tensor& weight) {
  const ArgumentCheck check("linear", device());
  check_linear(check, "out", out, x, weight, activation_dtype());
  CHECK(out.dtype == activation_dtype() || out.dtype == DType::kFloat32, "linear: out is ",
        to_string(out.dtype), ", expected ", to_string(activation_dtype()), " or float32");
  if (x.dim(0) > 0) linear_impl(out, x, weight, false);
}

void Backend::linear_add(const Tensor& residual, const Tensor& x, const Tensor& weight) {
  const ArgumentCheck check("linear_add", device());
  check_linear(check, "residual", residual, x, weight, activation_dtype());
  CHECK(residual.dtype == DType::kFloat32, "linear_add: residual is ", to_string(residual.dtype),
        ", expected float32");
  if (x.dim(0) > 0) linear_impl(residual, x, weight, true);
}

namespace {

void check_normed(const ArgumentCheck& check, const NormedRows& rows, DType activation_dtype) {
  check.rank("normed", rows.values, 2);
  check("normed", rows.values, activation_dtype, rows.values.shape);
  check("squares", rows.squares, DType::kFloat32,
        {rows.values.dim(0), ceil_divide(rows.values.dim(1), NormedRows::kSquaresFeatures)});
}

}  // namespace

void Backend::normalize(const NormedRows& out, const Tensor& x, const Tensor& weight) {
  const ArgumentCheck check("normalize", device());
  check_normed(check, out, activation_dtype());
  check("x", x, DType::kFloat32, out.values.shape);
  check("weight", weight, DType::kFloat32, {x.dim(1)});
  if (x.dim(0) > 0) normalize_impl(out, x, weight);
}

void Backend::linear_add_normalize(const Tensor& residual, const NormedRows& normed,
                                   const Tensor& x, const Tensor& weight,
                                   const Tensor& norm_weight) {
  const ArgumentCheck check("linear_add_normalize", device());
  check_linear(check, "residual", residual, x, weight, activation_dtype());
  check("residual", residual, DType::kFloat32, residual.shape);
  check_normed(check, normed, activation_dtype());
  check.shape("normed", normed.values, residual.shape);
  check("norm_weight", norm_weight, DType::kFloat32, {residual.dim(1)});
  if (x.dim(0) > 0) linear_add_normalize_impl(residual, normed, x, weight, norm_weight);
}

void Backend::normed_linear(const Tensor& out, const NormedRows& x, const Tensor& weight) {
  const ArgumentCheck check("normed_linear", device());
  check_normed(check, x, activation_dtype());
  check_linear(check, "out", out, x.values, weight, activation_dtype());
  check("out", out, activation_dtype(), out.shape);
  if (out.dim(0) > 0) normed_linear_impl(out, x, weight);
}

void Backend::normed_linear_silu_mul(const Tensor& out, const NormedRows& x, const Tensor& weight,
                                     const Tensor& gate_up) {
  const ArgumentCheck check("normed_linear_silu_mul", device());
  check_normed(check, x, activation_dtype());
  check_linear(check, "gate_up", gate_up, x.values, weight, activation_dtype());
  check("gate_up", gate_up, activation_dtype(), gate_up.shape);
  CHECK(weight.dim(0) % 2 == 0, "normed_linear_silu_mul: weight has ", weight.dim(0),
        " rows, expected an even number");
  check("out", out, activation_dtype(), {gate_up.dim(0), weight.dim(0) / 2});
  if (out.dim(0) > 0) normed_linear_silu_mul_impl(out, x, weight, gate_up);
}

void Backend::normalize_impl(const NormedRows& out, const Tensor& x, const Tensor& weight) {
  rms_norm_impl(out.values, x, weight, out.epsilon);
}

void Backend::linear_add_normalize_impl(const Tensor& residual, const NormedRows& normed,
                                        const Tensor& x, const Tensor& weight,
                                        const Tensor& norm_weight) {
  linear_impl(residual, x, weight, true);
  rms_norm_impl(normed.values, residual, norm_weight, normed.epsilon);
}

void Backend::normed_linear_impl(const Tensor& out, const NormedRows& x, const Tensor& weight) {
  linear_impl(out, x.values, weight, false);
}

void Backend::normed_linear_silu_mul_impl(const Tensor& out, const NormedRows& x,
                                          const Tensor& weight, const Tensor& gate_up) {
  linear_impl(gate_up, x.values, weight, false);
  silu_mul_impl(out, gate_up);
}

namespace {

void check_rope(const ArgumentCheck& check, const Tensor& query, const KvPages& pages,
                const Tensor& qkv, const Tensor& positions, const Tensor& kv_slots,
                const Tensor& inverse_frequencies, DType activation_dtype) {
  check_pages(check, pages, activation_dtype);
  check.rank("query", query, 3);
  const int64_t num_tokens = query.dim(0);
  const int64_t num_heads = query.dim(1);
  const int64_t head_dim = pages.head_dim();
  check("query", query, activation_dtype, {num_tokens, num_heads, head_dim});
  check("qkv", qkv, activation_dtype,
        {num_tokens, (num_heads + 2 * pages.num_kv_heads()) * head_dim});
  check("positions", positions, DType::kInt32, {num_tokens});
  check("kv_slots", kv_slots, DType::kInt32, {num_tokens});
  check("inverse_frequencies", inverse_frequencies, DType::kFloat32, {head_dim / 2});
  CHECK(head_dim % 2 == 0, check.operation(), ": head_dim is ", head_dim,
        ", expected an even number");
}

}  // namespace

void Backend::rope_store_kv(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                            const Tensor& positions, const Tensor& kv_slots,
                            const Tensor& inverse_frequencies) {
  const ArgumentCheck check("rope_store_kv", device());
  check_rope(check, query, pages, qkv, positions, kv_slots, inverse_frequencies,
             activation_dtype());
  if (query.dim(0) > 0) {
    rope_store_kv_impl(query, pages, qkv, positions, kv_slots, inverse_frequencies);
  }
}

void Backend::normed_linear_rope_store_kv(const Tensor& query, const KvPages& pages,
                                          const NormedRows& x, const Tensor& weight,
                                          const Tensor& positions, const Tensor& kv_slots,
                                          const Tensor& inverse_frequencies, const Tensor& qkv) {
  const ArgumentCheck check("normed_linear_rope_store_kv", device());
  check_normed(check, x, activation_dtype());
  check_linear(check, "qkv", qkv, x.values, weight, activation_dtype());
  check_rope(check, query, pages, qkv, positions, kv_slots, inverse_frequencies,
             activation_dtype());
  if (query.dim(0) > 0) {
    normed_linear_rope_store_kv_impl(query, pages, x, weight, positions, kv_slots,
                                     inverse_frequencies, qkv);
  }
}

void Backend::normed_linear_rope_store_kv_impl(const Tensor& query, const KvPages& pages,
                                               const NormedRows& x, const Tensor& weight,
                                               const Tensor& positions, const Tensor& kv_slots,
                                               const Tensor& inverse_frequencies,
                                               const Tensor& qkv) {
  normed_linear_impl(qkv, x, weight);
  rope_store_kv_impl(query, pages, qkv, positions, kv_slots, inverse_frequencies);
}

void Backend::attention(const Tensor& out, const AttentionParams& params) {
  const ArgumentCheck check("attention", device());
  const AttentionBatch& batch = params.batch;
  check_pages(check, params.pages, activation_dtype());
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
  CHECK(params.workspace.dtype == DType::kFloat32 && params.workspace.device == device(),
        "attention: the workspace is not float32 on ", to_string(device()));
  CHECK(params.sliding_window >= 0, "attention: sliding window of ", params.sliding_window);
  CHECK(params.causal || params.sliding_window == 0, "attention: a sliding window of ",
        params.sliding_window, " tokens without causal");
  CHECK(params.scale > 0.0f, "attention: scale is ", params.scale, ", expected a positive number");
  CHECK(params.softcap >= 0.0f, "attention: softcap is ", params.softcap,
        ", expected a positive number, or 0 for none");
  CHECK(batch.max_decode_query_length <= kMaxDecodeQueryLength, "attention: decodes of up to ",
        batch.max_decode_query_length, " query tokens, at most ", kMaxDecodeQueryLength,
        " are possible");
  if (params.query.dim(0) > 0) attention_impl(out, params);
}

void Backend::silu_mul(const Tensor& out, const Tensor& gate_up) {
  const ArgumentCheck check("silu_mul", device());
  check.rank("out", out, 2);
  check("out", out, activation_dtype(), out.shape);
  check("gate_up", gate_up, activation_dtype(), {out.dim(0), 2 * out.dim(1)});
  if (out.dim(0) > 0) silu_mul_impl(out, gate_up);
}

void Backend::gather_rows(const Tensor& out, const Tensor& x, const Tensor& rows) {
  const ArgumentCheck check("gather_rows", device());
  check.rank("x", x, 2);
  check.rank("rows", rows, 1);
  check("x", x, DType::kFloat32, x.shape);
  check("rows", rows, DType::kInt32, rows.shape);
  check("out", out, DType::kFloat32, {rows.dim(0), x.dim(1)});
  if (rows.dim(0) > 0) gather_rows_impl(out, x, rows);
}

void Backend::penalize(const Tensor& logits, const PenaltyBatch& penalties) {
  const ArgumentCheck check("penalize", device());
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
  if (num_sequences > 0) penalize_impl(logits, penalties);
}

void Backend::sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling) {
  const ArgumentCheck check("sample", device());
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

std::unique_ptr<FusedDecoder> Backend::make_fused_decoder(const FusedDecoderModel& /*model*/,
                                                          std::string& problem) {
  problem = concat("there is none on ", to_string(device()));
  return nullptr;
}

std::unique_ptr<StandardAttention> Backend::make_standard_attention() {
  throw Error(concat("standard attention is not available on ", to_string(device())));
}

}  // namespace tessera
