// The operations a transformer needs, on one device.
//
// Public functions check shapes, dtypes and devices once and then call the device's private
// implementation. Operations are asynchronous with respect to the host and ordered among
// themselves; download(), finish_download() and synchronize() wait. Every argument tensor is on
// this backend's device and contiguous. A Backend is used from one thread at a time; upload_parts()
// says when from two.
//
// Types: "activation" is activation_dtype(): float32 on the CPU, bfloat16 or float16 on CUDA. The
// residual stream and logits are float32 everywhere. Sums are accumulated in float32 or wider.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention_params.h"
#include "kernels/kernel_choice.h"
#include "kernels/sampling_params.h"
#include "kernels/tensor/buffer.h"
#include "kernels/tensor/stopped.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

class FusedDecoder;
class StandardAttention;
struct FusedDecoderModel;

struct DeviceMemory {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
};

// Sizes that bound every later call, so that scratch space is known at start.
struct BackendLimits {
  int64_t max_tokens = 0;          // query tokens of a step
  int64_t max_sequences = 0;       // sequences of a step
  int64_t max_context_length = 0;  // tokens of a sequence
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
};

// A contiguous part of a device tensor that is filled from a file, of at most kMaxUploadPartBytes
// in the dtype in which the file stores it.
struct UploadPart {
  Tensor destination;
  DType source_dtype = DType::kFloat32;

  size_t source_bytes() const {
    return static_cast<size_t>(destination.num_elements()) * size_of(source_dtype);
  }
};

// On an H200, weights arrive at 46 GB/s in parts of 1 MiB, at 53 in parts of 4 MiB or 8.
constexpr size_t kMaxUploadPartBytes = size_t{4} << 20;

// A download that has been started; see Backend::start_download.
using DownloadTicket = uint64_t;

// The tokens of 4096 sequences.
constexpr size_t kMaxStartedDownloadBytes = size_t{16} << 10;

// RMSNorm's result on its way from the operation that makes it to the products that read it. Which
// form it has is the device's choice, the same for all operations on as many tokens: `values`
// alone, or `values` without the norm's scale, which `squares` then gives.
struct NormedRows {
  static constexpr int64_t kSquaresFeatures = 32;

  Tensor values;   // activation [num_tokens, hidden_size]
  Tensor squares;  // float32 [num_tokens, ceil(hidden_size / kSquaresFeatures)]
  float epsilon = 0.0f;
};

// Early reads. A device may begin an operation while the one before it in the order of calls ends,
// and read these of its inputs at once:
//   - weights, also of norms, and inverse frequencies;
//   - positions, slots, query starts, context lengths and block tables;
//   - rows of KV pages of tokens before this step.
// They must be complete before the operation just before begins, and that one may itself begin
// early. embed() never does: it begins when all before it is complete. So the engine copies a
// step's inputs (upload_inputs) before embed(), and a step writes KV rows of its own tokens only.
class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual DeviceType device() const = 0;
  // For people: "NVIDIA H200, sm_90, 139.7 GiB" or "CPU, 2 threads, AVX-512".
  virtual std::string description() const = 0;
  // For people: which attention kernels run for these sizes, and why.
  virtual std::string attention_description(const BackendLimits& limits) const = 0;
  virtual DType activation_dtype() const = 0;
  // The dtype in which a weight matrix stored as `stored` is kept on this device.
  virtual DType weight_dtype(DType stored) const = 0;
  // The first call of an operation takes far longer than the next (its code is loaded), so that
  // running each once while upload_parts() waits for a file makes the first token come earlier.
  virtual bool needs_warm_up() const = 0;
  // Operations return before the device has run them, so that the host can prepare the next ones
  // meanwhile.
  virtual bool is_asynchronous() const = 0;
  // A device on which operations take seconds asks while it computes. Told to stop, operations and
  // copies throw Stopped, and what they were to write is unspecified. Others never ask.
  virtual void set_stop_question(StopQuestion /*should_stop*/) {}

  // --- memory -----------------------------------------------------------------------------------
  virtual DeviceMemory memory() const = 0;
  // Throws Error naming `purpose`, the bytes asked for and the bytes free.
  virtual Buffer allocate(size_t bytes, std::string_view purpose) = 0;
  // Copies source.size_bytes() from host memory, converting when the dtypes differ (floats only).
  // `source` may be reused when the call returns.
  void upload(const Tensor& destination, const Tensor& source);
  // The same without conversion and with less delay between the operations before and after, for
  // the few kilobytes that change from step to step: int32 or float32, to the beginning of an
  // allocation or a multiple of 16 bytes from it. No weights: see early reads.
  void upload_inputs(const Tensor& destination, const Tensor& source);
  // Fills all `parts`, converting as upload() does, while several threads read: read(i, target)
  // writes parts[i].source_bytes() bytes to host memory, 16-byte aligned. on_read(i) follows on the
  // calling thread, in order. Returns when all parts are on the device. Throws what read threw for
  // the first part that failed, or what on_read threw; the parts' contents are then unspecified.
  // While it runs, another thread may run operations (see needs_warm_up).
  using ReadPart = std::function<void(size_t index, std::byte* target)>;
  using OnPartRead = std::function<void(size_t index)>;
  void upload_parts(std::span<const UploadPart> parts, const ReadPart& read,
                    const OnPartRead& on_read);
  // Copies to host memory and waits until it is there. Same dtype and shape.
  void download(const Tensor& destination, const Tensor& source);
  // A download of at most kMaxStartedDownloadBytes, int32 or float32, in two parts, between which
  // operations may follow: they change nothing in what is downloaded, and finish_download() does
  // not wait for them. The last two started can be finished; none has to be.
  DownloadTicket start_download(const Tensor& source);
  void finish_download(const Tensor& destination, DownloadTicket ticket);
  virtual void synchronize() = 0;
  // Scratch that attention needs within `limits`; AttentionParams::workspace is at least this.
  virtual size_t attention_workspace_bytes(const BackendLimits& limits) const = 0;

  // --- operations -------------------------------------------------------------------------------
  // out[t] = table[token_ids[t]]; table[0] for kNonFiniteLogits, which sample() may have left there
  //   out float32 [num_tokens, hidden_size], table weight [vocab_size, hidden_size],
  //   token_ids int32 [num_tokens]
  void embed(const Tensor& out, const Tensor& table, const Tensor& token_ids);

  // out = x / sqrt(mean(x^2) + epsilon) * weight        (Zhang & Sennrich 2019)
  //   out activation [num_tokens, hidden_size], x float32 same shape, weight float32 [hidden_size]
  void rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon);

  // out = rms_norm(x, weight, out.epsilon), for the products normed_linear...() only
  void normalize(const NormedRows& out, const Tensor& x, const Tensor& weight);

  // out = x . weight^T
  //   out activation or float32 [num_tokens, out_features], x activation [num_tokens, in_features],
  //   weight [out_features, in_features]
  void linear(const Tensor& out, const Tensor& x, const Tensor& weight);

  // residual += x . weight^T
  //   residual float32 [num_tokens, out_features]; the rest as in linear()
  void linear_add(const Tensor& residual, const Tensor& x, const Tensor& weight);

  // linear_add(residual, x, weight), then normalize(normed, residual, norm_weight)
  void linear_add_normalize(const Tensor& residual, const NormedRows& normed, const Tensor& x,
                            const Tensor& weight, const Tensor& norm_weight);

  // out = x . weight^T, out activation; the rest as in linear()
  void normed_linear(const Tensor& out, const NormedRows& x, const Tensor& weight);

  // out = silu_mul(x . weight^T)
  //   out activation [num_tokens, intermediate_size], weight [2 * intermediate_size, hidden_size]
  //   gate_up activation [num_tokens, 2 * intermediate_size], scratch
  void normed_linear_silu_mul(const Tensor& out, const NormedRows& x, const Tensor& weight,
                              const Tensor& gate_up);

  // Splits qkv into heads, rotates queries and keys (Su et al. 2021, pairs j and j + head_dim / 2
  // as Hugging Face checkpoints store them) and writes keys and values to their KV pages.
  //   qkv activation [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim], order q, k, v
  //   query activation [num_tokens, num_heads, head_dim]
  //   positions int32 [num_tokens]; inverse_frequencies float32 [head_dim / 2]
  //   kv_slots int32 [num_tokens], page * page_size + row
  void rope_store_kv(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                     const Tensor& positions, const Tensor& kv_slots,
                     const Tensor& inverse_frequencies);

  // rope_store_kv(query, pages, x . weight^T, ...)
  //   weight [(num_heads + 2 * num_kv_heads) * head_dim, hidden_size]
  //   qkv activation [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim], scratch
  void normed_linear_rope_store_kv(const Tensor& query, const KvPages& pages, const NormedRows& x,
                                   const Tensor& weight, const Tensor& positions,
                                   const Tensor& kv_slots, const Tensor& inverse_frequencies,
                                   const Tensor& qkv);

  // Attention of every query token over its sequence's pages; never an N x N matrix.
  //   out activation [num_tokens, num_heads, head_dim]
  void attention(const Tensor& out, const AttentionParams& params);

  // out = silu(gate) * up, gate_up = [gate | up]
  //   out activation [num_tokens, intermediate_size],
  //   gate_up activation [num_tokens, 2 * intermediate_size]
  void silu_mul(const Tensor& out, const Tensor& gate_up);

  // out[i] = x[rows[i]]
  //   out float32 [num_rows, hidden_size], x float32 [num_tokens, hidden_size],
  //   rows int32 [num_rows]
  void gather_rows(const Tensor& out, const Tensor& x, const Tensor& rows);

  // Applies PenaltyBatch to logits float32 [num_sequences, vocab_size] in place.
  void penalize(const Tensor& logits, const PenaltyBatch& penalties);

  // tokens[s] = a draw from logits[s] by SamplingBatch, or kNonFiniteLogits.
  //   tokens int32 [num_sequences], logits float32 [num_sequences, vocab_size]
  void sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling);

  // --- a whole step -----------------------------------------------------------------------------
  // What computes a decode step of `model` at once. nullptr where only the operations above can, on
  // this device or for these shapes; `problem` then says why, for people. Keeps the model's
  // tensors, which must outlive it, as must this backend. Allocates a few MiB.
  virtual std::unique_ptr<FusedDecoder> make_fused_decoder(const FusedDecoderModel& model,
                                                           std::string& problem);

  // --- measurement ------------------------------------------------------------------------------
  // Bytes per second that reading a large buffer reaches on this device now. Takes about 0.2 s and
  // allocates; for benchmarks only.
  virtual double measure_read_bandwidth() = 0;
  // Seconds that `operations` takes, once for each of `repetitions`, after untimed runs. It may
  // only enqueue operations of this backend: no copy, allocation or synchronisation. CUDA records
  // them into a graph and times its replays, so that launches cost what they cost inside a graph.
  virtual std::vector<double> measure_seconds(const std::function<void()>& operations,
                                              int64_t repetitions) = 0;
  // The comparator of attention(), for benchmarks only; uses this backend, which must outlive it.
  // Throws Error where the device has none.
  virtual std::unique_ptr<StandardAttention> make_standard_attention();

 protected:
  Backend() = default;

  static constexpr size_t kStartedDownloads = 2;

  // By default the single operations, one after the other, with x.values complete.
  virtual void normalize_impl(const NormedRows& out, const Tensor& x, const Tensor& weight);
  virtual void linear_add_normalize_impl(const Tensor& residual, const NormedRows& normed,
                                         const Tensor& x, const Tensor& weight,
                                         const Tensor& norm_weight);
  virtual void normed_linear_impl(const Tensor& out, const NormedRows& x, const Tensor& weight);
  virtual void normed_linear_silu_mul_impl(const Tensor& out, const NormedRows& x,
                                           const Tensor& weight, const Tensor& gate_up);
  virtual void normed_linear_rope_store_kv_impl(const Tensor& query, const KvPages& pages,
                                                const NormedRows& x, const Tensor& weight,
                                                const Tensor& positions, const Tensor& kv_slots,
                                                const Tensor& inverse_frequencies,
                                                const Tensor& qkv);

 private:
  virtual void upload_impl(const Tensor& destination, const Tensor& source) = 0;
  virtual void upload_inputs_impl(const Tensor& destination, const Tensor& source) {
    upload_impl(destination, source);
  }
  virtual void upload_parts_impl(std::span<const UploadPart> parts, const ReadPart& read,
                                 const OnPartRead& on_read) = 0;
  virtual void download_impl(const Tensor& destination, const Tensor& source) = 0;
  // The device keeps kStartedDownloads copies on the host, of which a new one replaces copy
  // `index`.
  virtual void start_download_impl(size_t index, const Tensor& source) = 0;
  virtual void finish_download_impl(size_t index, const Tensor& destination) = 0;
  virtual void embed_impl(const Tensor& out, const Tensor& table, const Tensor& token_ids) = 0;
  virtual void rms_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                             float epsilon) = 0;
  // accumulate: out += instead of out =
  virtual void linear_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                           bool accumulate) = 0;
  virtual void rope_store_kv_impl(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                                  const Tensor& positions, const Tensor& kv_slots,
                                  const Tensor& inverse_frequencies) = 0;
  virtual void attention_impl(const Tensor& out, const AttentionParams& params) = 0;
  virtual void silu_mul_impl(const Tensor& out, const Tensor& gate_up) = 0;
  virtual void gather_rows_impl(const Tensor& out, const Tensor& x, const Tensor& rows) = 0;
  virtual void penalize_impl(const Tensor& logits, const PenaltyBatch& penalties) = 0;
  virtual void sample_impl(const Tensor& tokens, const Tensor& logits,
                           const SamplingBatch& sampling) = 0;

  std::array<Tensor, kStartedDownloads> started_;  // what the last downloads were started from
  DownloadTicket next_ticket_ = 0;
};

// num_threads 0: one per physical core.
std::unique_ptr<Backend> make_cpu_backend(int num_threads);

// What can be said about CUDA on this machine without using it.
struct CudaStatus {
  bool built = false;   // this binary has the CUDA backend
  int num_devices = 0;  // visible GPUs
  std::string problem;  // why there is none: "no NVIDIA driver", "driver supports CUDA 12.4,
                        // need 13.0", "no visible GPU"; empty when num_devices > 0
};
CudaStatus cuda_status();

// Throws Error when the GPU is absent, its architecture was not built for, or its driver too old.
// compute_dtype is kBFloat16 or kFloat16.
std::unique_ptr<Backend> make_cuda_backend(int device_index, DType compute_dtype,
                                           KernelChoice choice = KernelChoice::kFastest);

}  // namespace tessera
