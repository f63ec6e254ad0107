#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "kernels/backend.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/copy_tensor.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/host_memory.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/read_bandwidth.h"
#include "kernels/cpu/rms_norm.h"
#include "kernels/cpu/rope_store_kv.h"
#include "kernels/cpu/sampling.h"
#include "kernels/cpu/silu_mul.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/upload_parts.h"

namespace tessera {
namespace {

// Every operation has finished when its call returns.
class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int num_threads) : pool_(num_threads), scratch_(num_threads) {}

  DeviceType device() const override { return DeviceType::kCpu; }
  std::string description() const override {
    return concat("CPU, ", counted(pool_.num_threads(), "thread"), ", ", vector_instruction_set());
  }
  std::string attention_description(const BackendLimits& /*limits*/) const override {
    return "blocks of 96 query rows over tiles of 96 keys, one thread each; decodes in parts of "
           "1024 "
           "keys";
  }
  DType activation_dtype() const override { return DType::kFloat32; }
  // Decoding is bound by reading weights: widening them in memory would only make them larger.
  DType weight_dtype(DType stored) const override { return stored; }
  bool needs_warm_up() const override { return false; }
  bool is_asynchronous() const override { return false; }
  void set_stop_question(StopQuestion should_stop) override {
    pool_.set_stop_question(std::move(should_stop));
  }

  DeviceMemory memory() const override { return host_memory(); }
  Buffer allocate(size_t bytes, std::string_view purpose) override {
    return allocate_host_memory(bytes, purpose);
  }
  void synchronize() override {}
  size_t attention_workspace_bytes(const BackendLimits& limits) const override {
    return tessera::attention_workspace_bytes(limits);
  }
  double measure_read_bandwidth() override { return measure_host_read_bandwidth(pool_); }
  std::vector<double> measure_seconds(const std::function<void()>& operations,
                                      int64_t repetitions) override {
    operations();
    std::vector<double> seconds;
    for (int64_t i = 0; i < repetitions; ++i) {
      const auto start = std::chrono::steady_clock::now();
      operations();
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      seconds.push_back(elapsed.count());
    }
    return seconds;
  }

 private:
  void upload_impl(const Tensor& destination, const Tensor& source) override {
    copy_tensor(destination, source, pool_);
  }
  void upload_parts_impl(std::span<const UploadPart> parts, const ReadPart& read,
                         const OnPartRead& on_read) override {
    tessera::upload_parts(parts, read, on_read, pool_.num_threads());
  }
  void download_impl(const Tensor& destination, const Tensor& source) override {
    copy_tensor(destination, source, pool_);
  }
  void start_download_impl(size_t index, const Tensor& source) override {
    std::memcpy(started_downloads_[index].data(), source.data, source.size_bytes());
  }
  void finish_download_impl(size_t index, const Tensor& destination) override {
    std::memcpy(destination.data, started_downloads_[index].data(), destination.size_bytes());
  }
  void embed_impl(const Tensor& out, const Tensor& table, const Tensor& token_ids) override {
    tessera::gather_rows(out, table, token_ids, pool_);
  }
  void rms_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                     float epsilon) override {
    tessera::rms_norm(out, x, weight, epsilon, pool_);
  }
  void linear_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                   bool accumulate) override {
    tessera::linear(out, x, weight, accumulate, scratch_, pool_);
  }
  void rope_store_kv_impl(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                          const Tensor& positions, const Tensor& kv_slots,
                          const Tensor& inverse_frequencies) override {
    tessera::rope_store_kv(query, pages, qkv, positions, kv_slots, inverse_frequencies,
                           rotation_table_, pool_);
  }
  void attention_impl(const Tensor& out, const AttentionParams& params) override {
    tessera::attention(out, params, scratch_, pool_);
  }
  void silu_mul_impl(const Tensor& out, const Tensor& gate_up) override {
    tessera::silu_mul(out, gate_up, pool_);
  }
  void gather_rows_impl(const Tensor& out, const Tensor& x, const Tensor& rows) override {
    tessera::gather_rows(out, x, rows, pool_);
  }
  void penalize_impl(const Tensor& logits, const PenaltyBatch& penalties) override {
    tessera::penalize(logits, penalties, pool_);
  }
  void sample_impl(const Tensor& tokens, const Tensor& logits,
                   const SamplingBatch& sampling) override {
    tessera::sample(tokens, logits, sampling, scratch_, pool_);
  }

  ThreadPool pool_;
  ThreadScratch scratch_;
  RotationTable rotation_table_;
  std::array<std::array<std::byte, kMaxStartedDownloadBytes>, kStartedDownloads> started_downloads_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int num_threads) {
  CHECK(num_threads >= 0, "the CPU backend cannot run on ", num_threads, " threads");
  return std::make_unique<CpuBackend>(num_threads == 0 ? count_physical_cores() : num_threads);
}

}  // namespace tessera
