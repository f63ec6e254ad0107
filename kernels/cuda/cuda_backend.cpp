#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <iomanip>

#include "kernels/backend.h"
#include "kernels/cuda/attention_combine.h"
#include "kernels/cuda/attention_decode.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/attention_prefill_sm80.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/device_check.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/host_copy.h"
#include "kernels/cuda/linear_cublas.h"
#include "kernels/cuda/linear_gemv.h"
#include "kernels/cuda/linear_plan.h"
#include "kernels/cuda/penalize.h"
#include "kernels/cuda/read_bandwidth.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/rope_store_kv.h"
#include "kernels/cuda/sampling.h"
#include "kernels/cuda/silu_mul.h"
#include "kernels/cuda/staging_ring.h"

namespace tessera {
namespace {

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

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device_index, DType compute_dtype)
      : device_index_(device_index), compute_dtype_(compute_dtype) {
    CUDA_CHECK(cudaGetDeviceProperties(&properties_, device_index));
  }
  // Memory is freed after this; work that still uses it must be over.
  ~CudaBackend() override { cudaStreamSynchronize(stream_.get()); }

  DeviceType device() const override { return DeviceType::kCuda; }
  std::string description() const override {
    std::ostringstream stream;
    stream << properties_.name << ", sm_" << properties_.major << properties_.minor << ", "
           << std::fixed << std::setprecision(1)
           << static_cast<double>(properties_.totalGlobalMem) / (1 << 30) << " GiB";
    return stream.str();
  }
  DType activation_dtype() const override { return compute_dtype_; }
  DType weight_dtype(DType /*stored*/) const override { return compute_dtype_; }

  DeviceMemory memory() const override {
    CUDA_CHECK(cudaSetDevice(device_index_));
    DeviceMemory memory;
    CUDA_CHECK(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes));
    return memory;
  }
  Buffer allocate(size_t bytes, std::string_view purpose) override {
    CUDA_CHECK(cudaSetDevice(device_index_));
    return allocate_device_memory(bytes, purpose);
  }
  void synchronize() override { CUDA_CHECK(cudaStreamSynchronize(stream())); }
  size_t attention_workspace_bytes(const BackendLimits& limits) const override {
    return sizeof(float) * static_cast<size_t>(max_partial_elements(
                               limits.num_heads, limits.num_kv_heads, limits.head_dim,
                               properties_.multiProcessorCount));
  }
  double measure_read_bandwidth() override { return read_bandwidth(stream()); }

 private:
  // The stream, with its device made current on the calling thread.
  cudaStream_t stream() const {
    CUDA_CHECK(cudaSetDevice(device_index_));
    return stream_.get();
  }

  void upload_impl(const Tensor& destination, const Tensor& source) override;
  void download_impl(const Tensor& destination, const Tensor& source) override;
  void linear_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                   bool accumulate) override;
  void attention_impl(const Tensor& out, const AttentionParams& params) override;
  void decode_attention(const Tensor& out, const AttentionParams& params);

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
    launch_sample(tokens, logits, sampling, stream());
  }

  int device_index_;
  DType compute_dtype_;
  cudaDeviceProp properties_;
  Stream stream_;
  StagingRing staging_;
  Buffer unconverted_ = allocate_device_memory(StagingRing::kSlotBytes, "converting weights");
  Buffer downloaded_ = allocate_pinned_memory(kDownloadBytes, "downloads");
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
    host_copy(staged, host + begin * in_size, count * in_size);
    const bool convert = source.dtype != destination.dtype;
    void* const fetched = convert ? unconverted_.data() : target + begin * out_size;
    CUDA_CHECK(cudaMemcpyAsync(fetched, staged, count * in_size, cudaMemcpyHostToDevice, stream()));
    if (convert) {
      launch_convert(target + begin * out_size, destination.dtype, fetched, source.dtype,
                     static_cast<int64_t>(count), stream());
    }
  }
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

void CudaBackend::linear_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                              bool accumulate) {
  CHECK(weight.dtype == compute_dtype_, "linear: weight is ", to_string(weight.dtype),
        ", expected ", to_string(compute_dtype_));
  CHECK(weight.dim(1) % 8 == 0, "linear: in_features is ", weight.dim(1),
        ", CUDA needs a multiple of 8");
  switch (choose_linear_kernel(x.dim(0))) {
    case LinearKernel::kGemv:
      return launch_linear_gemv(out, x, weight, accumulate, stream());
    case LinearKernel::kCublas:
      return cublas_.run(out, x, weight, accumulate, stream());
  }
}

void CudaBackend::attention_impl(const Tensor& out, const AttentionParams& params) {
  if (params.batch.num_decodes > 0) decode_attention(out, params);
  if (params.batch.num_decodes < params.batch.num_sequences) {
    launch_attention_prefill_sm80(out, params, stream());
  }
}

void CudaBackend::decode_attention(const Tensor& out, const AttentionParams& params) {
  const AttentionBatch& batch = params.batch;
  const int64_t visible = params.sliding_window == 0
                              ? batch.max_context_length
                              : std::min(batch.max_context_length,
                                         params.sliding_window + DecodeAttentionPlan::kTileTokens);
  const DecodeAttentionPlan plan =
      plan_decode_attention({.num_sequences = batch.num_decodes,
                             .num_heads = params.query.dim(1),
                             .num_kv_heads = params.pages.num_kv_heads(),
                             .max_context_length = visible,
                             .num_multiprocessors = properties_.multiProcessorCount});
  if (plan.num_splits > 1) {
    const int64_t needed = partial_elements(
        batch.num_decodes * params.query.dim(1) * plan.num_splits, params.pages.head_dim());
    CHECK(params.workspace.dtype == DType::kFloat32 &&
              (params.workspace.empty() ? 0 : params.workspace.num_elements()) >= needed,
          "attention: workspace ", to_string(params.workspace.dtype), params.workspace.shape,
          " is too small, expected ", needed, " float32 elements");
  }
  launch_attention_decode(out, params, plan, stream());
  if (plan.num_splits > 1) launch_attention_combine(out, params, plan, stream());
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int device_index, DType compute_dtype) {
  CHECK(compute_dtype == DType::kBFloat16 || compute_dtype == DType::kFloat16,
        "CUDA computes in bfloat16 or float16, not in ", to_string(compute_dtype));
  select_device(device_index);
  return std::make_unique<CudaBackend>(device_index, compute_dtype);
}

}  // namespace tessera
