#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iomanip>

#include "kernels/backend.h"
#include "kernels/cuda/attention/decode/kernel.h"
#include "kernels/cuda/attention/decode/plan.h"
#include "kernels/cuda/attention/prefill/plan.h"
#include "kernels/cuda/attention/prefill/sm80.h"
#include "kernels/cuda/attention/prefill/sm90.h"
#include "kernels/cuda/attention/standard/cublas.h"
#include "kernels/cuda/decode_step/decoder.h"
#include "kernels/cuda/device/check.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/cuda/device/graph_timing.h"
#include "kernels/cuda/device/memory.h"
#include "kernels/cuda/device/read_bandwidth.h"
#include "kernels/cuda/linear/cublas.h"
#include "kernels/cuda/linear/gemv.h"
#include "kernels/cuda/linear/plan.h"
#include "kernels/cuda/linear/skinny/kernel.h"
#include "kernels/cuda/rows/gather_rows.h"
#include "kernels/cuda/rows/rms_norm.h"
#include "kernels/cuda/rows/rope_store_kv.h"
#include "kernels/cuda/rows/silu_mul.h"
#include "kernels/cuda/sampling/penalize.h"
#include "kernels/cuda/sampling/sampling.h"
#include "kernels/cuda/transfer/convert.h"
#include "kernels/cuda/transfer/host_copy.h"
#include "kernels/cuda/transfer/part_uploader.h"
#include "kernels/cuda/transfer/staging_ring.h"

namespace tessera {
namespace {

static_assert(NormedRows::kSquaresFeatures == kSquaresFeatures);

constexpr size_t kDownloadBytes = size_t{1} << 20;

// Owns the one stream on which everything runs.
class Stream {
 public:
  Stream() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Owns a point in the stream that the host can wait for.
class Event {
 public:
  Event() { CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device_index, DType compute_dtype, KernelChoice choice)
      : gpu_(gpu_traits(device_index, choice)), compute_dtype_(compute_dtype) {
    CUDA_CHECK(cudaMemsetAsync(prefill_schedule_.data(), 0, prefill_schedule_.size_bytes(),
                               stream_.get()));
    decode_arrivals_ = allocate_device_memory(
        static_cast<size_t>(gpu_.num_multiprocessors) * sizeof(uint32_t), "merging attention");
    CUDA_CHECK(
        cudaMemsetAsync(decode_arrivals_.data(), 0, decode_arrivals_.size_bytes(), stream_.get()));
  }
  // Memory is freed after this; work that still uses it must be over.
  ~CudaBackend() override { cudaStreamSynchronize(stream_.get()); }

  DeviceType device() const override { return DeviceType::kCuda; }
  std::string description() const override {
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, gpu_.index));
    std::ostringstream stream;
    stream << properties.name << ", sm_" << gpu_.compute_capability << ", " << std::fixed
           << std::setprecision(1) << static_cast<double>(properties.totalGlobalMem) / (1 << 30)
           << " GiB";
    return stream.str();
  }
  std::string attention_description(const BackendLimits& limits) const override {
    return concat("prefill by ", describe(plan_prefill_attention(gpu_, limits.head_dim, false)),
                  ", decode by ",
                  describe(plan_decode_attention(decode_shape(limits, kDecodeTileTokens, 1))));
  }
  DType activation_dtype() const override { return compute_dtype_; }
  DType weight_dtype(DType /*stored*/) const override { return compute_dtype_; }
  bool needs_warm_up() const override { return true; }
  bool is_asynchronous() const override { return true; }

  DeviceMemory memory() const override {
    CUDA_CHECK(cudaSetDevice(gpu_.index));
    DeviceMemory memory;
    CUDA_CHECK(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes));
    return memory;
  }
  Buffer allocate(size_t bytes, std::string_view purpose) override {
    CUDA_CHECK(cudaSetDevice(gpu_.index));
    return allocate_device_memory(bytes, purpose);
  }
  void synchronize() override { CUDA_CHECK(cudaStreamSynchronize(stream())); }
  size_t attention_workspace_bytes(const BackendLimits& limits) const override {
    return sizeof(float) * static_cast<size_t>(decode_partial_elements(
                               decode_shape(limits, kDecodeTileTokens, kMaxDecodeQueryLength)));
  }
  double measure_read_bandwidth() override { return read_bandwidth(stream()); }
  std::vector<double> measure_seconds(const std::function<void()>& operations,
                                      int64_t repetitions) override {
    return time_graph_replays(operations, repetitions, stream());
  }
  std::unique_ptr<FusedDecoder> make_fused_decoder(const FusedDecoderModel& model,
                                                   std::string& problem) override;
  std::unique_ptr<StandardAttention> make_standard_attention() override {
    return make_cublas_standard_attention(stream());
  }

 private:
  // The stream, with its device made current on the calling thread.
  cudaStream_t stream() const {
    CUDA_CHECK(cudaSetDevice(gpu_.index));
    return stream_.get();
  }

  // Uses what `limits` says about heads.
  DecodeAttentionShape decode_shape(const BackendLimits& limits, int64_t page_size,
                                    int64_t max_query_length) const {
    return {.num_heads = limits.num_heads,
            .num_kv_heads = limits.num_kv_heads,
            .head_dim = limits.head_dim,
            .page_size = page_size,
            .max_query_length = max_query_length,
            .gpu = gpu_};
  }

  void upload_impl(const Tensor& destination, const Tensor& source) override;
  void upload_inputs_impl(const Tensor& destination, const Tensor& source) override;
  void upload_parts_impl(std::span<const UploadPart> parts, const ReadPart& read,
                         const OnPartRead& on_read) override {
    CUDA_CHECK(cudaSetDevice(gpu_.index));
    part_uploader_.run(parts, read, on_read);
  }
  void download_impl(const Tensor& destination, const Tensor& source) override;
  void start_download_impl(size_t index, const Tensor& source) override;
  void finish_download_impl(size_t index, const Tensor& destination) override;
  void linear_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                   bool accumulate) override;
  void normalize_impl(const NormedRows& out, const Tensor& x, const Tensor& weight) override;
  void linear_add_normalize_impl(const Tensor& residual, const NormedRows& normed, const Tensor& x,
                                 const Tensor& weight, const Tensor& norm_weight) override;
  void normed_linear_impl(const Tensor& out, const NormedRows& x, const Tensor& weight) override;
  void normed_linear_silu_mul_impl(const Tensor& out, const NormedRows& x, const Tensor& weight,
                                   const Tensor& gate_up) override;
  void normed_linear_rope_store_kv_impl(const Tensor& query, const KvPages& pages,
                                        const NormedRows& x, const Tensor& weight,
                                        const Tensor& positions, const Tensor& kv_slots,
                                        const Tensor& inverse_frequencies,
                                        const Tensor& qkv) override;
  void attention_impl(const Tensor& out, const AttentionParams& params) override;
  LinearPlan plan(const Tensor& x, const Tensor& weight) const;
  void launch_skinny(const SkinnyProduct& product, const SkinnyPlan& plan) {
    launch_linear_skinny_sm90(product, plan, gpu_.num_multiprocessors, stream());
  }
  bool defers_scale(const NormedRows& rows) const;
  void decode_attention(const Tensor& out, const AttentionParams& params);
  void prefill_attention(const Tensor& out, const AttentionParams& params);

  void embed_impl(const Tensor& out, const Tensor& table, const Tensor& token_ids) override {
    launch_gather_rows(out, table, token_ids, stream());
  }
  void rms_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                     float epsilon) override {
    launch_rms_norm(out, x, weight, epsilon, stream());
  }
  void rope_store_kv_impl(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                          const Tensor& positions, const Tensor& kv_slots,
                          const Tensor& inverse_frequencies) override {
    launch_rope_store_kv(query, pages, qkv, positions, kv_slots, inverse_frequencies, stream());
  }
  void silu_mul_impl(const Tensor& out, const Tensor& gate_up) override {
    launch_silu_mul(out, gate_up, stream());
  }
  void gather_rows_impl(const Tensor& out, const Tensor& x, const Tensor& rows) override {
    launch_gather_rows(out, x, rows, stream());
  }
  void penalize_impl(const Tensor& logits, const PenaltyBatch& penalties) override {
    launch_penalize(logits, penalties, stream());
  }
  void sample_impl(const Tensor& tokens, const Tensor& logits,
                   const SamplingBatch& sampling) override {
    launch_sample(tokens, logits, sampling, gpu_.runs_hopper(), stream());
  }

  GpuTraits gpu_;
  DType compute_dtype_;
  Stream stream_;
  StagingRing staging_;
  Buffer unconverted_ = allocate_device_memory(StagingRing::kSlotBytes, "converting uploads");
  PartUploader part_uploader_;
  Buffer prefill_schedule_ = allocate_device_memory(2 * sizeof(int32_t), "scheduling attention");
  Buffer decode_arrivals_;
  Buffer downloaded_ = allocate_pinned_memory(kDownloadBytes, "downloads");
  struct StartedDownload {
    Buffer memory = allocate_pinned_memory(kMaxStartedDownloadBytes, "started downloads");
    Event arrived;
  };
  std::array<StartedDownload, kStartedDownloads> started_downloads_;
  CublasLinear cublas_;
};

void CudaBackend::upload_impl(const Tensor& destination, const Tensor& source) {
  const auto* const host = static_cast<const std::byte*>(source.data);
  auto* const target = static_cast<std::byte*>(destination.data);
  const size_t in_size = size_of(source.dtype);
  const size_t out_size = size_of(destination.dtype);
  const auto num_elements = static_cast<size_t>(source.num_elements());
  const size_t slot_elements = StagingRing::kSlotBytes / in_size;
  for (size_t begin = 0; begin < num_elements; begin += slot_elements) {
    const size_t count = std::min(slot_elements, num_elements - begin);
    std::byte* const staged = staging_.reserve(count * in_size, stream());
    std::memcpy(staged, host + begin * in_size, count * in_size);
    const bool convert = source.dtype != destination.dtype;
    void* const fetched = convert ? unconverted_.data() : target + begin * out_size;
    CUDA_CHECK(cudaMemcpyAsync(fetched, staged, count * in_size, cudaMemcpyHostToDevice, stream()));
    if (convert) {
      launch_convert(target + begin * out_size, destination.dtype, fetched, source.dtype,
                     static_cast<int64_t>(count), stream());
    }
  }
}

void CudaBackend::upload_inputs_impl(const Tensor& destination, const Tensor& source) {
  const size_t bytes = source.size_bytes();
  if (bytes > kMaxKernelCopyBytes) return upload_impl(destination, source);
  std::byte* const staged = staging_.reserve(bytes, stream());
  std::memcpy(staged, source.data, bytes);
  launch_copy_from_host(destination.data, staged, bytes, stream());
}

void CudaBackend::download_impl(const Tensor& destination, const Tensor& source) {
  auto* const host = static_cast<std::byte*>(destination.data);
  const auto* const device = static_cast<const std::byte*>(source.data);
  const size_t size_bytes = source.size_bytes();
  for (size_t begin = 0; begin < size_bytes; begin += kDownloadBytes) {
    const size_t bytes = std::min(kDownloadBytes, size_bytes - begin);
    CUDA_CHECK(cudaMemcpyAsync(downloaded_.data(), device + begin, bytes, cudaMemcpyDeviceToHost,
                               stream()));
    CUDA_CHECK(cudaStreamSynchronize(stream()));
    std::memcpy(host + begin, downloaded_.data(), bytes);
  }
}

void CudaBackend::start_download_impl(size_t index, const Tensor& source) {
  const StartedDownload& download = started_downloads_[index];
  static_assert(kMaxStartedDownloadBytes <= kMaxKernelCopyBytes);
  launch_copy_to_host(download.memory.data(), source.data, source.size_bytes(), stream());
  CUDA_CHECK(cudaEventRecord(download.arrived.get(), stream()));
}

void CudaBackend::finish_download_impl(size_t index, const Tensor& destination) {
  const StartedDownload& download = started_downloads_[index];
  CUDA_CHECK(cudaSetDevice(gpu_.index));
  CUDA_CHECK(cudaEventSynchronize(download.arrived.get()));
  std::memcpy(destination.data, download.memory.data(), destination.size_bytes());
}

std::unique_ptr<FusedDecoder> CudaBackend::make_fused_decoder(const FusedDecoderModel& model,
                                                              std::string& problem) {
  const FusedDecoderLayer& layer = model.layers.front();
  const FusedDecodePlan plan = plan_fused_decode({.hidden_size = layer.qkv_proj.dim(1),
                                                  .intermediate_size = layer.down_proj.dim(1),
                                                  .vocab_size = model.lm_head.dim(0),
                                                  .num_heads = model.num_heads,
                                                  .num_kv_heads = layer.pages.num_kv_heads(),
                                                  .head_dim = layer.pages.head_dim(),
                                                  .page_size = layer.pages.page_size(),
                                                  .is_bfloat16 = compute_dtype_ == DType::kBFloat16,
                                                  .gpu = gpu_});
  problem = plan.problem;
  if (!plan.runs()) return nullptr;
  return make_cuda_fused_decoder(model, plan, gpu_, stream());
}

LinearPlan CudaBackend::plan(const Tensor& x, const Tensor& weight) const {
  CHECK(weight.dtype == compute_dtype_, "linear: weight is ", to_string(weight.dtype),
        ", expected ", to_string(compute_dtype_));
  CHECK(weight.dim(1) % 8 == 0, "linear: in_features is ", weight.dim(1),
        ", CUDA needs a multiple of 8");
  return plan_linear(
      {.num_tokens = x.dim(0), .out_features = weight.dim(0), .in_features = weight.dim(1)}, gpu_);
}

void CudaBackend::linear_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                              bool accumulate) {
  const LinearPlan linear = plan(x, weight);
  switch (linear.kernel) {
    case LinearKernel::kGemv:
      return launch_linear_gemv(out, x, weight, accumulate, stream());
    case LinearKernel::kSkinny:
      return launch_skinny({.out = out, .x = x, .weight = weight, .accumulate = accumulate},
                           linear.skinny);
    case LinearKernel::kCublas:
      return cublas_.run(out, x, weight, accumulate, stream());
  }
}

// Without the scale, a row may lie outside of float16's range.
bool CudaBackend::defers_scale(const NormedRows& rows) const {
  return compute_dtype_ == DType::kBFloat16 &&
         defers_norm_scale(rows.values.dim(0), rows.values.dim(1), gpu_);
}

void CudaBackend::normalize_impl(const NormedRows& out, const Tensor& x, const Tensor& weight) {
  if (!defers_scale(out)) return Backend::normalize_impl(out, x, weight);
  launch_rms_norm_unscaled(out.values, out.squares, x, weight, stream());
}

void CudaBackend::linear_add_normalize_impl(const Tensor& residual, const NormedRows& normed,
                                            const Tensor& x, const Tensor& weight,
                                            const Tensor& norm_weight) {
  if (!defers_scale(normed)) {
    return Backend::linear_add_normalize_impl(residual, normed, x, weight, norm_weight);
  }
  launch_skinny(
      {.out = residual,
       .x = x,
       .weight = weight,
       .accumulate = true,
       .norm = {.values = normed.values, .squares = normed.squares, .weight = norm_weight}},
      plan(x, weight).skinny);
}

void CudaBackend::normed_linear_impl(const Tensor& out, const NormedRows& x, const Tensor& weight) {
  if (!defers_scale(x)) return Backend::normed_linear_impl(out, x, weight);
  launch_skinny(
      {.out = out, .x = x.values, .weight = weight, .x_squares = x.squares, .epsilon = x.epsilon},
      plan(x.values, weight).skinny);
}

void CudaBackend::normed_linear_silu_mul_impl(const Tensor& out, const NormedRows& x,
                                              const Tensor& weight, const Tensor& gate_up) {
  if (plan(x.values, weight).kernel != LinearKernel::kSkinny) {
    return Backend::normed_linear_silu_mul_impl(out, x, weight, gate_up);
  }
  launch_skinny({.out = out,
                 .x = x.values,
                 .weight = weight,
                 .is_gated = true,
                 .x_squares = defers_scale(x) ? x.squares : Tensor{},
                 .epsilon = x.epsilon},
                plan_gated_skinny(out.dim(0), out.dim(1), gpu_.num_multiprocessors));
}

void CudaBackend::normed_linear_rope_store_kv_impl(const Tensor& query, const KvPages& pages,
                                                   const NormedRows& x, const Tensor& weight,
                                                   const Tensor& positions, const Tensor& kv_slots,
                                                   const Tensor& inverse_frequencies,
                                                   const Tensor& qkv) {
  const LinearPlan linear = plan(x.values, weight);
  if (!fuses_rope(linear, pages.head_dim())) {
    return Backend::normed_linear_rope_store_kv_impl(query, pages, x, weight, positions, kv_slots,
                                                     inverse_frequencies, qkv);
  }
  launch_skinny({.out = query,
                 .x = x.values,
                 .weight = weight,
                 .x_squares = defers_scale(x) ? x.squares : Tensor{},
                 .epsilon = x.epsilon,
                 .rope = {.pages = pages,
                          .positions = positions,
                          .kv_slots = kv_slots,
                          .inverse_frequencies = inverse_frequencies}},
                linear.skinny);
}

void CudaBackend::attention_impl(const Tensor& out, const AttentionParams& params) {
  if (params.batch.num_decodes > 0) decode_attention(out, params);
  if (params.batch.num_decodes < params.batch.num_sequences) prefill_attention(out, params);
}

void CudaBackend::prefill_attention(const Tensor& out, const AttentionParams& params) {
  const PrefillPlan plan =
      plan_prefill_attention(gpu_, params.pages.head_dim(), params.softcap > 0.0f);
  switch (plan.kernel) {
    case PrefillKernel::kPortable:
      return launch_attention_prefill_sm80(out, params, stream());
    case PrefillKernel::kHopper:
      return launch_attention_prefill_sm90(out, params,
                                           static_cast<int32_t*>(prefill_schedule_.data()),
                                           gpu_.num_multiprocessors, stream());
  }
}

void CudaBackend::decode_attention(const Tensor& out, const AttentionParams& params) {
  const KvPages& pages = params.pages;
  const DecodeAttentionShape shape =
      decode_shape({.num_heads = params.query.dim(1),
                    .num_kv_heads = pages.num_kv_heads(),
                    .head_dim = pages.head_dim()},
                   pages.page_size(), params.batch.max_decode_query_length);
  const int64_t needed = decode_partial_elements(shape);
  CHECK(!params.workspace.empty() && params.workspace.num_elements() >= needed,
        "attention: workspace ", params.workspace.shape, " is too small, expected ", needed,
        " float32 elements");
  launch_attention_decode(out, params, plan_decode_attention(shape),
                          static_cast<uint32_t*>(decode_arrivals_.data()), stream());
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int device_index, DType compute_dtype,
                                           KernelChoice choice) {
  CHECK(compute_dtype == DType::kBFloat16 || compute_dtype == DType::kFloat16,
        "CUDA computes in bfloat16 or float16, not in ", to_string(compute_dtype));
  select_device(device_index);
  return std::make_unique<CudaBackend>(device_index, compute_dtype, choice);
}

}  // namespace tessera
